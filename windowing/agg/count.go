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
}, func(c *Call) count { return count{all: len(c.Exprs) == 0} })

// count counts the rows whose argument is not null, all where there is none.
type count struct {
	rowCount
	all bool
}

func (a *count) Add(in Input) {
	if a.all || !in.Value.IsNull() {
		a.rowCount++
	}
}
func (a *count) Merge(other Accumulator) { a.rowCount += other.(*count).rowCount }

// rowCount is a number of rows.
type rowCount int64

func (a *rowCount) Result() (Value, error) { return Int(int64(*a)), nil }
func (a *rowCount) Append(b []byte) []byte { return binary.AppendUvarint(b, uint64(*a)) }

func (a *rowCount) decode(d *reader) {
	if *a = rowCount(d.uvarint()); *a < 0 {
		d.fail("count out of range")
	}
}
