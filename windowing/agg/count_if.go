package agg

var countIfFunction = define(Function{
	Name:    "count_if",
	Summary: "The number of rows where the condition is true.",
	Args:    []string{"condition"},
	MinArgs: 1,
	Check:   checkBool,
	Examples: []Example{
		{Call: "count_if(this.v > 1)", Values: `[true, false, null, true]`, Result: `2`},
		{Call: "count_if(this.v > 1)", Values: `[]`, Result: `0`},
	},
}, func(*Call) trueCount { return trueCount{} })

// trueCount counts the rows whose argument is true.
type trueCount struct{ rowCount }

func (a *trueCount) Add(in Input) {
	if in.Value.AsBool() {
		a.rowCount++
	}
}
func (a *trueCount) Merge(other Accumulator) { a.rowCount += other.(*trueCount).rowCount }
