package expr

import (
	"cmp"
	"errors"
	"strconv"
)

// comparison is a path or metadata compared with a text or a number. Bloblang
// knows more ways to compare values of different types; they are left to it.
type comparison struct {
	operand  source
	holds    outcomes
	literal  item // str, goInt or goFloat
	fallback *mapping
}

// outcomes says whether a comparison holds for an operand that is less than,
// equal to and greater than the literal.
type outcomes [3]bool

// operators are those of comparisons; of two that begin alike the longer stands
// first.
var operators = []struct {
	text  string
	holds outcomes
}{
	{"==", outcomes{false, true, false}},
	{"!=", outcomes{true, false, true}},
	{"<=", outcomes{true, true, false}},
	{">=", outcomes{false, true, true}},
	{"<", outcomes{true, false, false}},
	{">", outcomes{false, false, true}},
}

// ordering says whether the operator asks for an order, which null has not.
func (o outcomes) ordering() bool { return o[0] != o[2] }

func (c *comparison) load(f *Frame, row int, it *item) error {
	err := c.operand.load(f, row, it)
	if err != nil && !errors.Is(err, ErrValue) {
		return err
	}
	holds, known := false, false
	if err == nil {
		holds, known = c.compare(it)
	}
	if !known {
		return c.fallback.load(f, row, it)
	}
	if it.token = boolFalse; holds {
		it.token = boolTrue
	}
	return nil
}

// compare knows null, texts and numbers; of numbers two integers are compared as
// such, any others as floats.
func (c *comparison) compare(it *item) (holds, known bool) {
	if c.literal.token == str {
		switch it.token {
		case none, null:
			if it.any != nil { // nil bytes, which Bloblang compares as a text
				return false, false
			}
			return c.holds[0], !c.holds.ordering()
		case str:
			return c.holds[1+cmp.Compare(it.text, c.literal.text)], true
		}
		return false, false
	}
	i, f, ok := it.number()
	switch {
	case !ok:
		return false, false
	case it.token == goInt && c.literal.token == goInt:
		return c.holds[1+cmp.Compare(i, c.literal.int)], true
	case c.literal.token == goInt:
		return c.holds[1+cmp.Compare(f, float64(c.literal.int))], true
	}
	return c.holds[1+cmp.Compare(f, c.literal.float)], true
}

// number reads a number that Bloblang reads likewise (it lets unsigned ones wrap),
// as an integer (the token is goInt then) and as a float.
func (it *item) number() (i int64, f float64, ok bool) {
	switch it.token {
	case integer:
		if i, ok = parseInt(it.text); ok {
			it.token = goInt
			return i, float64(i), true
		}
	case number:
		if f, ok = parseShort(it.text); ok {
			return 0, f, true
		}
	case goInt:
		return it.int, float64(it.int), true
	case goFloat:
		return 0, it.float, true
	default:
		return 0, 0, false
	}
	f, err := strconv.ParseFloat(it.text, 64)
	return 0, f, err == nil
}
