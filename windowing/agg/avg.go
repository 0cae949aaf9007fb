package agg

var avgFunction = define(Function{
	Name:    "avg",
	also:    []string{"average", "mean"},
	Summary: "The arithmetic mean: the exact sum divided by the number of values, rounded once.",
	Args:    []string{"number"},
	MinArgs: 1,
	Check:   checkNumber,
	Examples: []Example{
		{Call: "avg(this.v)", Values: `[1, 2, null]`, Result: `1.5`},
		{Call: "avg(this.v)", Values: `[4, 4.0]`, Result: `4`},
		{Call: "avg(this.v)", Values: `[1e308, 1e308, 1e308]`, Result: `1e+308`},
		{Call: "avg(this.v)", Values: `[null]`, Result: `null`},
	},
}, func(*Call) avg { return avg{} })

// avg keeps the exact total, which counts its numbers.
type avg struct{ total }

func (a *avg) Add(in Input)            { a.add(in.Value) }
func (a *avg) Merge(other Accumulator) { a.merge(&other.(*avg).total) }
func (a *avg) Append(b []byte) []byte  { return a.append(b) }

func (a *avg) Result() (Value, error) {
	if a.n == 0 {
		return Null(), nil
	}
	return finite(a.quotient(a.n))
}
