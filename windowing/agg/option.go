package agg

import (
	"errors"
	"fmt"
	"strconv"
)

// OptionKind says what an option takes.
type OptionKind uint8

// The kinds of options.
const (
	OptionNumber     OptionKind = iota // a constant
	OptionInteger                      // a whole constant
	OptionExpression                   // Bloblang, for a Reducer
)

// Option is a named argument beside the value expressions: `name: constant`, or
// only the constant behind the expressions where it is required.
type Option struct {
	Name     string
	Kind     OptionKind
	Min, Max float64 // smallest and largest constant
	Default  Value   // null: the option is required
	Optional bool    // an expression that may be missing
	// Tuning options bound memory and do not change what the state means. They
	// are no part of Call.Text and may change freely.
	Tuning  bool
	Summary string
}

var errConstant = errors.New("not a constant of this option")

// parse reads a constant of this option.
func (o *Option) parse(text string) (Value, error) {
	if o.Kind == OptionExpression {
		return String(text), nil
	}
	v, err := parseNumber(text, o.Kind)
	if err == nil && (v.AsFloat() < o.Min || v.AsFloat() > o.Max) {
		err = errConstant
	}
	if err != nil {
		return Value{}, fmt.Errorf("%s is %.40q, allowed is %s", o.Name, text, o.allowed())
	}
	return v, nil
}

func parseNumber(text string, kind OptionKind) (Value, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int(i), nil
	}
	if kind == OptionInteger {
		return Value{}, errConstant
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != f {
		return Value{}, errConstant
	}
	return Float(f), nil
}

// allowed names what the option takes.
func (o *Option) allowed() string {
	lowest, highest := string(appendFloat(nil, o.Min)), string(appendFloat(nil, o.Max))
	switch o.Kind {
	case OptionInteger:
		return "a whole number from " + lowest + " to " + highest + ", written as a constant"
	case OptionExpression:
		return "a Bloblang expression"
	}
	return "a number from " + lowest + " to " + highest + ", written as a constant"
}

// usage is the option as it stands in a call.
func (o *Option) usage() string {
	if o.Kind == OptionExpression {
		return o.Name + ": expression"
	}
	return o.Name
}

// limitOptions are the bounds of an accumulator that keeps values.
func limitOptions(limit int64) []Option {
	return []Option{{
		Name: "limit", Kind: OptionInteger, Min: 1, Max: 100_000_000, Default: Int(limit), Tuning: true,
		Summary: "How many values one group of one window may keep. Past it the field is null with an error on the row and the values are let go.",
	}}
}

// limitBytes is the bound for the texts among the values.
func limitBytes() Option {
	return Option{
		Name: "limit_bytes", Kind: OptionInteger, Min: 1, Max: 1 << 40, Default: Int(16 << 20), Tuning: true,
		Summary: "How many bytes the texts, lists and objects among these values may take together.",
	}
}
