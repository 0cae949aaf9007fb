package agg

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Reducer evaluates the four Bloblang expressions of a reduce call; the package
// that knows Bloblang puts one into Call.Reducer before it calls New or Decode.
// The expressions see `acc` and `value` (add), `left` and `right` (merge), `acc`
// (result). Its calls are made by the owner of the accumulator, one at a time.
type Reducer interface {
	Init() (Value, error)
	Add(acc, value Value) (Value, error)
	Merge(left, right Value) (Value, error)
	Result(acc Value) (Value, error)
}

var reduceFunction = define(Function{
	Name:    "reduce",
	also:    []string{"fold", "aggregate"},
	Summary: "Your own aggregate, in Bloblang: add gives the next accumulator from this.acc and this.value, merge one from this.left and this.right (sliding and session windows need it), result the answer from this.acc. Rows are added in the order of arrival. An expression that fails makes the field null with an error on the row.",
	Args:    []string{"value"},
	MinArgs: 1,
	Options: []Option{
		{Name: "init", Kind: OptionExpression, Summary: "The accumulator before the first value."},
		{Name: "add", Kind: OptionExpression, Summary: "The accumulator after this.value was added to this.acc."},
		{Name: "merge", Kind: OptionExpression, Summary: "The accumulator of this.left and this.right together."},
		{Name: "result", Kind: OptionExpression, Optional: true, Summary: "The answer from this.acc; by default this.acc itself."},
		limitBytes(),
	},
	Check: checkValue,
	Examples: []Example{
		{Call: "reduce(this.v, init: 0, add: this.acc + this.value, merge: this.left + this.right)", Values: `[1, null, 5]`, Result: `6`},
		{Call: "reduce(this.v, init: 0, add: this.acc + this.value, merge: this.left + this.right)", Values: `[]`, Result: `null`},
	},
}, func(c *Call) reduction { return reduction{call: c} })

// reduction keeps what the user's expressions made of the values. The first
// failure stays: the accumulator is of no use any more and is let go.
type reduction struct {
	call    *Call
	acc     Value
	some    bool
	failure string
}

func (a *reduction) Add(in Input) {
	if in.Value.IsNull() || a.failure != "" {
		return
	}
	if !a.some {
		acc, err := a.call.Reducer.Init()
		if !a.set("init", acc, err) {
			return
		}
	}
	acc, err := a.call.Reducer.Add(a.acc, in.Value)
	a.set("add", acc, err)
}

func (a *reduction) Merge(other Accumulator) {
	o := other.(*reduction)
	switch {
	case !o.some || a.failure != "":
	case !a.some || o.failure != "":
		a.acc, a.some, a.failure = o.acc, o.some, o.failure
	default:
		acc, err := a.call.Reducer.Merge(a.acc, o.acc)
		a.set("merge", acc, err)
	}
}

// set takes the outcome of an expression and tells whether it is one.
func (a *reduction) set(step string, acc Value, err error) bool {
	a.some = true
	if err == nil && int64(len(acc.text)) > a.call.limitBytes {
		err = fmt.Errorf("%w: the accumulator has %d bytes, more than the option limit_bytes of %d", ErrLimit, len(acc.text), a.call.limitBytes)
	}
	if err == nil && !acc.IsFinite() {
		err = ErrNotFinite
	}
	if err != nil {
		a.acc, a.failure = Value{}, step+": "+err.Error()
		return false
	}
	a.acc = acc.Clone()
	return true
}

// ErrReduce: an expression of a reduce call failed.
var ErrReduce = errors.New("reduce failed")

func (a *reduction) Result() (Value, error) {
	switch {
	case a.failure != "":
		return Value{}, fmt.Errorf("%w in %s", ErrReduce, a.failure)
	case !a.some:
		return Null(), nil
	}
	v, err := a.call.Reducer.Result(a.acc)
	if err == nil && !v.IsFinite() {
		err = ErrNotFinite
	}
	if err != nil {
		return Value{}, fmt.Errorf("%w in result: %w", ErrReduce, err)
	}
	return v, nil
}

func (a *reduction) Append(b []byte) []byte {
	switch {
	case a.failure != "":
		b = binary.AppendUvarint(append(b, 2), uint64(len(a.failure)))
		return append(b, a.failure...)
	case a.some:
		return a.acc.Append(append(b, 1))
	}
	return append(b, 0)
}

func (a *reduction) decode(d *reader) {
	switch d.byte() {
	case 0:
	case 1:
		a.some, a.acc = true, d.value()
	case 2:
		a.some, a.failure = true, d.text()
		if a.failure == "" {
			d.fail("no failure")
		}
	default:
		d.fail("unknown form of a reduction")
	}
}
