package agg

import "math"

var sumFunction = define(Function{
	Name:    "sum",
	Summary: "The sum: of integers an exact integer, with floats among them the exact sum rounded once, so that it does not depend on the order of the rows. An integer sum outside int64 is an error, judged at the end.",
	Args:    []string{"number"},
	MinArgs: 1,
	Check:   checkNumber,
	Examples: []Example{
		{Call: "sum(this.v)", Values: `[1, 2, null]`, Result: `3`},
		{Call: "sum(this.v)", Values: `[9007199254740993, 1, 1]`, Result: `9007199254740995`},
		{Call: "sum(this.v)", Values: `[9223372036854775807, 1, -1]`, Result: `9223372036854775807`},
		{Call: "sum(this.v)", Values: `[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]`, Result: `1`},
		{Call: "sum(this.v)", Values: `[1e16, 1, -1e16]`, Result: `1`},
		{Call: "sum(this.v)", Values: `[null]`, Result: `null`},
	},
}, func(*Call) sum { return sum{} })

// sum keeps the exact total.
type sum struct{ total }

func (a *sum) Add(in Input)            { a.add(in.Value) }
func (a *sum) Merge(other Accumulator) { a.merge(&other.(*sum).total) }
func (a *sum) Append(b []byte) []byte  { return a.append(b) }

func (a *sum) Result() (Value, error) {
	switch {
	case a.n == 0:
		return Null(), nil
	case !a.floats && a.narrow():
		return Int(int64(a.lo)), nil
	case !a.floats:
		return overflow(overflowInt)
	}
	return finite(a.quotient(1))
}

// finite is the value of f, an overflow where it is infinite.
func finite(f float64) (Value, error) {
	if math.IsInf(f, 0) {
		return overflow(overflowFloat)
	}
	return Float(f), nil
}
