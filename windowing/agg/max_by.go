package agg

var maxByFunction = define(Function{
	Name:    "max_by",
	also:    []string{"arg_max"},
	Summary: "The value of the row with the largest order, which is a number; at a tie of the earliest such row. Rows where either is null do not count.",
	Args:    []string{"value", "order"},
	MinArgs: 2,
	Check:   checkOrdered,
	Examples: []Example{
		{Call: "max_by(this.name, this.v)", Values: `[["a", 1], ["b", 3], ["c", 3.0], [null, 4], ["d", null]]`, Result: `"b"`},
		{Call: "max_by(this.name, this.v)", Values: `[]`, Result: `null`},
	},
}, func(*Call) maxBy { return maxBy{} })

// maxBy keeps the value with the largest order.
type maxBy struct{ extreme }

func (a *maxBy) Add(in Input)            { a.offer(in, 1) }
func (a *maxBy) Merge(other Accumulator) { a.take(&other.(*maxBy).extreme, 1) }
