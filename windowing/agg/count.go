package agg

import "encoding/binary"

var countFunction = define(Function{
	Name:    "count",
	Summary: "The number of rows; with an argument the number of rows where it is not null.",
	Args:    []string{"value"},
	Check:   checkValue,
	Examples: []Example{
		{Call: "count()", Values: `[1, null, "a"]`, Result: `3`},
		{Call: "count(this.v)", Values: `[1, null, "a"]`, Result: `2`},
		{Call: "count(this.v)", Values: `[null]`, Result: `0`},
		{Call: "count()", Values: `[]`, Result: `0`},
	},
}, func(c *Call) state {
	if len(c.Exprs) == 0 {
		return new(rowCount)
	}
	return &valueCount{}
})

// rowCount counts rows.
type rowCount int64

func (a *rowCount) Add(Input)               { *a++ }
func (a *rowCount) Merge(other Accumulator) { *a += *other.(*rowCount) }
func (a *rowCount) Result() (Value, error)  { return Int(int64(*a)), nil }
func (a *rowCount) Append(b []byte) []byte  { return binary.AppendUvarint(b, uint64(*a)) }

func (a *rowCount) decode(d *reader) {
	if *a = rowCount(d.uvarint()); *a < 0 {
		d.fail("count out of range")
	}
}

// valueCount counts the rows whose argument is not null.
type valueCount struct{ rowCount }

func (a *valueCount) Add(in Input) {
	if !in.Value.IsNull() {
		a.rowCount++
	}
}
func (a *valueCount) Merge(other Accumulator) { a.rowCount += other.(*valueCount).rowCount }
