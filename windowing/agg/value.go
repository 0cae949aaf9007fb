package agg

import (
	"cmp"
	"math"
	"strings"
)

// Kind says what a Value holds. The numbers are written to disk: append only.
type Kind uint8

// The kinds in the order in which Compare sorts them; Int and Float sort
// together, by their number.
const (
	KindNull   Kind = 0
	KindBool   Kind = 1
	KindInt    Kind = 2
	KindFloat  Kind = 3
	KindString Kind = 4
	KindJSON   Kind = 5 // an object or a list, as canonical JSON text
)

var kindNames = [...]string{"null", "bool", "number", "number", "text", "object or list"}

// String names the kind in the words that error messages use.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}

// Value is one value of an expression: a group key, the argument of an
// aggregate or its result. The zero Value is null. Two Values are == when they
// have the same kind and contents; 1 and 1.0 are not (see Canonical).
//
// It is 32 bytes with one pointer, so that maps and slices of it stay cheap.
type Value struct {
	kind Kind
	bits uint64 // bool, int64 or the bits of a float64
	text string // KindString, KindJSON
}

// Null is the value of a missing field.
func Null() Value { return Value{} }

// Bool is true or false.
func Bool(b bool) Value {
	if b {
		return Value{kind: KindBool, bits: 1}
	}
	return Value{kind: KindBool}
}

// Int is an integer, exact over the whole range of int64.
func Int(i int64) Value { return Value{kind: KindInt, bits: uint64(i)} }

// Float is a float64. NaN and the infinities can be held, so that an error
// message can show them, but no aggregate takes them (Function.Check).
func Float(f float64) Value { return Value{kind: KindFloat, bits: math.Float64bits(f)} }

// String is a text. It should be valid UTF-8: AppendJSON replaces the rest, so
// that different bytes would print alike. FromAny refuses such texts.
func String(s string) Value { return Value{kind: KindString, text: s} }

// JSON is an object or a list given as canonical JSON text: no white space,
// object keys sorted by their bytes, numbers as AppendJSON writes them. The
// caller vouches for that; ParseJSON takes any text.
func JSON(text string) Value { return Value{kind: KindJSON, text: text} }

// Kind says which of the As methods holds the contents.
func (v Value) Kind() Kind { return v.kind }

// IsNull tells whether v is null.
func (v Value) IsNull() bool { return v.kind == KindNull }

// IsNumber tells whether v is an Int or a Float.
func (v Value) IsNumber() bool { return v.kind == KindInt || v.kind == KindFloat }

// IsFinite is false for NaN and the infinities, which JSON cannot write.
func (v Value) IsFinite() bool {
	const exponent = 0x7ff << 52
	return v.kind != KindFloat || v.bits&exponent != exponent
}

// AsBool is the contents of a Bool, false for any other kind.
func (v Value) AsBool() bool { return v.kind == KindBool && v.bits != 0 }

// AsInt is the contents of an Int, 0 for any other kind.
func (v Value) AsInt() int64 {
	if v.kind != KindInt {
		return 0
	}
	return int64(v.bits)
}

// AsFloat is the nearest float64 of an Int or a Float, 0 for any other kind.
func (v Value) AsFloat() float64 {
	switch v.kind {
	case KindFloat:
		return math.Float64frombits(v.bits)
	case KindInt:
		return float64(int64(v.bits))
	}
	return 0
}

// AsString is the text of a String or the JSON text of an object or list, ""
// for any other kind.
func (v Value) AsString() string { return v.text }

// Canonical gives equal numbers one form: a float that is an integer within
// int64 becomes that Int (so -0 becomes 0), every NaN the same NaN. Canonical
// values are == exactly when their keys are equal.
func (v Value) Canonical() Value {
	if v.kind != KindFloat {
		return v
	}
	f := math.Float64frombits(v.bits)
	if i, ok := floatToInt(f); ok {
		return Int(i)
	}
	if f != f {
		return Float(math.NaN())
	}
	return v
}

// floatToInt is the int64 that equals f, if there is one.
func floatToInt(f float64) (int64, bool) {
	if !(f >= -1<<63 && f < 1<<63) { // also false for NaN
		return 0, false
	}
	i := int64(f)
	return i, float64(i) == f
}

// Clone copies the text of v, so that a kept value does not keep the message
// alive whose bytes it was cut from.
func (v Value) Clone() Value {
	v.text = strings.Clone(v.text)
	return v
}

// Compare orders values as their keys are ordered: null, false, true, NaN,
// numbers by value, texts by bytes, objects and lists by their canonical text.
// It is 0 for equal numbers of different kind.
func (v Value) Compare(w Value) int {
	if v.IsNumber() && w.IsNumber() {
		return compareNumbers(v, w)
	}
	if v.kind != w.kind {
		return cmp.Compare(v.kind, w.kind)
	}
	if v.kind == KindBool {
		return cmp.Compare(v.bits, w.bits)
	}
	return strings.Compare(v.text, w.text)
}

// compareNumbers is exact: an int above 2^53 is not rounded to a float first.
// NaN sorts before all numbers, as in cmp.Compare.
func compareNumbers(v, w Value) int {
	switch {
	case v.kind == KindInt && w.kind == KindInt:
		return cmp.Compare(int64(v.bits), int64(w.bits))
	case v.kind == KindFloat && w.kind == KindFloat:
		return cmp.Compare(math.Float64frombits(v.bits), math.Float64frombits(w.bits))
	case v.kind == KindInt:
		return compareIntFloat(int64(v.bits), math.Float64frombits(w.bits))
	}
	return -compareIntFloat(int64(w.bits), math.Float64frombits(v.bits))
}

func compareIntFloat(i int64, f float64) int {
	switch {
	case f != f || f < -1<<63:
		return 1
	case f >= 1<<63:
		return -1
	}
	whole := math.Trunc(f)
	if c := cmp.Compare(i, int64(whole)); c != 0 {
		return c
	}
	return cmp.Compare(whole, f)
}
