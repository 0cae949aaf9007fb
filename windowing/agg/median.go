package agg

var medianFunction = define(Function{
	Name:    "median",
	Summary: "The exact median: the middle number, or the mean of the two in the middle. It is quantile with q 0.5.",
	Args:    []string{"number"},
	MinArgs: 1,
	Options: limitOptions(100_000),
	Check:   checkNumber,
	Examples: []Example{
		{Call: "median(this.v)", Values: `[5, 1, null, 3]`, Result: `3`},
		{Call: "median(this.v)", Values: `[1, 2.5, 4, 4]`, Result: `3.25`},
		{Call: "median(this.v)", Values: `[9223372036854775807, 9223372036854775805]`, Result: `9223372036854775806`},
		{Call: "median(this.v)", Values: `[null]`, Result: `null`},
	},
	prepare: func(c *Call) error {
		c.shared = fraction{above: 1, below: 2}
		return nil
	},
}, func(c *Call) quantile { return quantile{call: c} })
