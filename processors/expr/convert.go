package expr

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// errNull stands for the one way to be null: the label has the error.
var errNull = errors.New("null")

// refuse names what is not allowed for the cell.
func refuse(c *cell, it *item) error {
	return fmt.Errorf("%.200s is %s, allowed are %s: %w", c.key.text, it.describe(), allowed[c.key.kind], ErrValue)
}

func toValue(f *Frame, c *cell, it *item) (agg.Value, error) {
	switch it.token {
	case none, null:
		return agg.Null(), nil
	case boolTrue, boolFalse:
		return agg.Bool(it.token == boolTrue), nil
	case str:
		return agg.String(f.keep(it)), nil
	case number, integer, goUint:
		return numberValue(c, it)
	case goInt:
		return agg.Int(it.int), nil
	case goFloat:
		return agg.Float(it.float), nil
	}
	var v agg.Value
	var err error
	if it.token == container {
		v, err = agg.ParseJSON(it.text)
	} else {
		v, err = agg.FromAny(it.any)
	}
	if err != nil {
		return agg.Null(), fmt.Errorf("%.200s: %w: %w", c.key.text, ErrValue, err)
	}
	return v, nil
}

// toKey is toValue without a copy of the text.
func toKey(f *Frame, c *cell, it *item) (agg.Value, error) {
	if it.token == str {
		return agg.String(it.text), nil
	}
	return toValue(f, c, it)
}

// numberValue reads the text of a JSON number. An integer beyond int64 counts as
// the float that it is the shortest text of, as JavaScript prints large floats;
// others would fall together with their neighbours.
func numberValue(c *cell, it *item) (agg.Value, error) {
	if it.token == integer {
		if i, ok := parseInt(it.text); ok {
			return agg.Int(i), nil
		}
	}
	if f, ok := parseShort(it.text); ok {
		return agg.Float(f), nil
	}
	f, err := strconv.ParseFloat(it.text, 64)
	if err != nil {
		return agg.Null(), fmt.Errorf("%.200s is the number %.40s, which no float of 64 bits can hold (.string() gives its text): %w", c.key.text, it.text, ErrValue)
	}
	if it.token != number && strconv.FormatFloat(f, 'f', -1, 64) != it.text {
		return agg.Null(), fmt.Errorf("%.200s is the integer %.40s, which 64 bits cannot hold (.string() gives its text, .number() the nearest float): %w", c.key.text, it.text, ErrValue)
	}
	return agg.Float(f), nil
}

// parseInt reads the integer of a JSON number, if an int64 can hold it.
func parseInt(text string) (int64, bool) {
	digits := text
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) > 18 {
		i, err := strconv.ParseInt(text, 10, 64)
		return i, err == nil
	}
	var i int64
	for _, c := range []byte(digits) {
		i = i*10 + int64(c-'0')
	}
	if negative {
		i = -i
	}
	return i, true
}

// powers are those of ten that a float64 holds exactly and a short number needs.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// parseShort reads a number of at most 15 digits without an exponent. Digits and
// power are exact then, so that one division gives the nearest float (Clinger,
// How to Read Floating Point Numbers Accurately, 1990).
func parseShort(text string) (float64, bool) {
	var digits int64
	point := len(text)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c-'0' <= 9:
			digits = digits*10 + int64(c-'0')
		case c == '.':
			point = i + 1
		case c != '-':
			return 0, false
		}
	}
	if len(text) > len(powers) {
		return 0, false
	}
	f := float64(digits) / powers[len(text)-point]
	if text[0] == '-' {
		f = -f
	}
	return f, true
}

// toText gives equal numbers one text. Numbers that are no Value keep theirs.
func toText(f *Frame, c *cell, it *item) (agg.Value, error) {
	switch it.token {
	case none, null:
		return agg.Null(), errNull
	case str:
		return agg.String(f.keep(it)), nil
	case container, goContainer:
		return agg.Null(), refuse(c, it)
	}
	v, err := toValue(f, c, it)
	switch {
	case err != nil: // a number
		return agg.String(f.keep(it)), nil
	case v.Kind() == agg.KindString: // a timestamp
		return v, nil
	}
	f.scratch = v.AppendJSON(f.scratch[:0])
	return agg.String(f.texts.keep(view(f.scratch))), nil
}

func toBool(_ *Frame, c *cell, it *item) (agg.Value, error) {
	switch it.token {
	case boolTrue, boolFalse:
		return agg.Bool(it.token == boolTrue), nil
	case none, null:
		return agg.Null(), errNull
	}
	return agg.Null(), refuse(c, it)
}

func toInt(_ *Frame, c *cell, it *item) (agg.Value, error) {
	switch it.token {
	case none, null:
		return agg.Null(), nil
	case goInt:
		return agg.Int(it.int), nil
	case integer:
		if i, ok := parseInt(it.text); ok {
			return agg.Int(i), nil
		}
	case str:
		if i, err := strconv.ParseInt(it.text, 10, 64); err == nil {
			return agg.Int(i), nil
		}
	case goFloat:
		return floatInt(c, it, it.float)
	case number:
		if float, err := strconv.ParseFloat(it.text, 64); err == nil {
			return floatInt(c, it, float)
		}
	}
	return agg.Null(), refuse(c, it)
}

// floatInt takes a float that is an integer, up to where floats skip some.
func floatInt(c *cell, it *item, f float64) (agg.Value, error) {
	if math.Abs(f) < 1<<53 && f == math.Trunc(f) {
		return agg.Int(int64(f)), nil
	}
	return agg.Null(), refuse(c, it)
}

func toTime(f *Frame, c *cell, it *item) (agg.Value, error) {
	var t watermark.Time
	var err error
	switch it.token {
	case none, null:
		return agg.Null(), errNull
	case integer:
		if i, ok := parseInt(it.text); ok {
			t, err = c.key.unit.FromInt(i)
		} else {
			t, err = c.key.unit.FromDecimal(it.text)
		}
	case number, goUint:
		t, err = c.key.unit.FromDecimal(it.text)
	case str:
		t, err = f.times.Parse(it.text)
	case goInt:
		t, err = c.key.unit.FromInt(it.int)
	case goFloat:
		t, err = c.key.unit.FromFloat(it.float)
	case goTime:
		t, err = watermark.FromStd(it.any.(time.Time))
	default:
		return agg.Null(), refuse(c, it)
	}
	if err != nil {
		return agg.Null(), fmt.Errorf("%.200s: %w: %w", c.key.text, ErrValue, err)
	}
	return agg.Int(int64(t)), nil
}
