package agg

import (
	"encoding/binary"

	"github.com/axiomhq/hyperloglog"
)

var approxCountDistinctFunction = define(Function{
	Name:    "approx_count_distinct",
	Summary: "About the number of different values (HyperLogLog with 2^14 registers): the standard error is 0.8 %, far less below a few thousand values. It takes at most 16 KiB, however many values there are. The same rows give the same answer in every order. Nulls are no values.",
	Args:    []string{"value"},
	MinArgs: 1,
	Check:   checkValue,
	Examples: []Example{
		{Call: "approx_count_distinct(this.v)", Values: `[1, 1.0, "1", null, "b"]`, Result: `3`},
		{Call: "approx_count_distinct(this.v)", Values: `[null]`, Result: `0`},
	},
}, func(*Call) approxCountDistinct { return approxCountDistinct{} })

// approxCountDistinct keeps a sketch of the keys once there is a value.
type approxCountDistinct struct{ sketch *hyperloglog.Sketch }

func (a *approxCountDistinct) Add(in Input) {
	if in.Value.IsNull() {
		return
	}
	if a.sketch == nil {
		a.sketch = hyperloglog.New14()
	}
	var space [128]byte
	a.sketch.Insert(in.Value.AppendKey(space[:0]))
}

func (a *approxCountDistinct) Merge(other Accumulator) {
	o := other.(*approxCountDistinct)
	switch {
	case o.sketch == nil:
	case a.sketch == nil:
		a.sketch = o.sketch.Clone()
	default:
		_ = a.sketch.Merge(o.sketch) // fails only for another precision, which decode refuses
	}
}

func (a *approxCountDistinct) Result() (Value, error) {
	if a.sketch == nil {
		return Int(0), nil
	}
	return Int(int64(a.sketch.Estimate())), nil
}

func (a *approxCountDistinct) Append(b []byte) []byte {
	if a.sketch == nil {
		return append(b, 0)
	}
	sketch, _ := a.sketch.AppendBinary(nil) // fails only for a sketch without a precision
	b = binary.AppendUvarint(b, uint64(len(sketch)))
	return append(b, sketch...)
}

func (a *approxCountDistinct) decode(d *reader) {
	const version, precision = 2, 14
	n := d.count(1)
	if n == 0 {
		return
	}
	if n < 2 || d.b[0] != version || d.b[1] != precision {
		d.fail("a sketch of another precision")
		return
	}
	a.sketch = new(hyperloglog.Sketch)
	if err := a.sketch.UnmarshalBinary(d.b[:n]); err != nil {
		d.fail(err.Error())
		return
	}
	d.b = d.b[n:]
}
