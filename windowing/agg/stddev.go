package agg

var stddevFunction = define(Function{
	Name:    "stddev",
	also:    []string{"std", "stddev_samp", "standard_deviation"},
	Summary: "The standard deviation of a sample (divided by n - 1), computed from exact sums; null for fewer than two values.",
	Args:    []string{"number"},
	MinArgs: 1,
	Check:   checkNumber,
	Examples: []Example{
		{Call: "stddev(this.v)", Values: `[2, 4, 4, 4, 5, 5, 7, 9, null]`, Result: `2.138089935299395`},
		{Call: "stddev(this.v)", Values: `[1e200, 3e200]`, Result: `1.414213562373095e+200`},
		{Call: "stddev(this.v)", Values: `[5]`, Result: `null`},
	},
}, func(*Call) stddev { return stddev{} })

// stddev keeps what variance keeps.
type stddev struct{ moments }

func (a *stddev) Merge(other Accumulator) { a.merge(&other.(*stddev).moments) }

func (a *stddev) Result() (Value, error) {
	if a.n < 2 {
		return Null(), nil
	}
	v := a.variance()
	f, _ := v.Sqrt(v).Float64()
	return finite(f)
}
