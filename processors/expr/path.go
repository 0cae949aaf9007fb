package expr

import (
	"strconv"
	"strings"
)

// segment is one step of a path. Bloblang takes a step into a list as an index
// if strconv.Atoi does.
type segment struct {
	key   string
	index int // fail: no index
}

// cursor reads the few forms of an expression that need no Bloblang to evaluate.
// Whatever it does not know for certain it refuses. Bloblang has compiled the
// text before, so that it needs to be right only on valid expressions.
type cursor struct{ rest string }

// take removes a prefix, if it is there.
func (c *cursor) take(prefix string) bool {
	rest, ok := strings.CutPrefix(c.rest, prefix)
	if ok {
		c.rest = rest
	}
	return ok
}

// done says whether only blanks are left.
func (c *cursor) done() bool { return strings.Trim(c.rest, " \t\r\n") == "" }

// name removes letters, digits and underscores.
func (c *cursor) name() (string, bool) {
	n := 0
	for n < len(c.rest) && isName(c.rest[n]) {
		n++
	}
	name := c.rest[:n]
	c.rest = c.rest[n:]
	return name, n > 0
}

func isName(b byte) bool {
	return b == '_' || b-'0' <= 9 || b|0x20 >= 'a' && b|0x20 <= 'z'
}

// quoted removes a text in double quotes.
func (c *cursor) quoted() (string, bool) {
	if !strings.HasPrefix(c.rest, `"`) {
		return "", false
	}
	prefix, err := strconv.QuotedPrefix(c.rest)
	if err != nil {
		return "", false
	}
	c.rest = c.rest[len(prefix):]
	text, err := strconv.Unquote(prefix)
	return text, err == nil
}

// path reads `this` and the steps behind it. Refused are the wildcard and
// indexes that are not written as strconv writes them, of which two forms could
// lead to one place.
func (c *cursor) path() (path []segment, ok bool) {
	if !c.take("this") || len(c.rest) > 0 && isName(c.rest[0]) {
		return nil, false
	}
	for c.take(".") {
		key, ok := c.quoted()
		if !ok {
			key, ok = c.name()
		}
		if !ok || key == "*" {
			return nil, false
		}
		index, err := strconv.Atoi(key)
		if err != nil || index < 0 {
			index = fail
		} else if strconv.Itoa(index) != key {
			return nil, false
		}
		path = append(path, segment{key, index})
	}
	// What follows belongs to the path: a call or a lambda.
	return path, !strings.HasPrefix(c.rest, "(")
}

// metadata reads `@key`, `@"key"` or `metadata("key")`.
func (c *cursor) metadata() (key string, ok bool) {
	if c.take("@") {
		if key, ok = c.quoted(); !ok {
			key, ok = c.name()
		}
		return key, ok && key != ""
	}
	if !c.take("metadata(") {
		return "", false
	}
	key, ok = c.quoted()
	return key, ok && key != "" && c.take(")")
}

// literal reads a constant of one word: a text, a number, a bool or null.
func (c *cursor) literal() bool {
	if _, ok := c.quoted(); ok {
		return true
	}
	for _, word := range []string{"true", "false", "null"} {
		if c.take(word) {
			return true
		}
	}
	c.take("-")
	if _, ok := c.digits(); !ok {
		return false
	}
	if c.take(".") {
		_, ok := c.digits()
		return ok
	}
	return true
}

func (c *cursor) digits() (string, bool) {
	n := 0
	for n < len(c.rest) && c.rest[n]-'0' <= 9 {
		n++
	}
	digits := c.rest[:n]
	c.rest = c.rest[n:]
	return digits, n > 0
}

// operator reads the operator of a comparison.
func (c *cursor) operator() (holds outcomes, ok bool) {
	c.rest = strings.TrimLeft(c.rest, " \t")
	for _, op := range operators {
		if c.take(op.text) {
			c.rest = strings.TrimLeft(c.rest, " \t")
			return op.holds, true
		}
	}
	return outcomes{}, false
}
