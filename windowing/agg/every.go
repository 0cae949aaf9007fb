package agg

var everyFunction = define(Function{
	Name:    "every",
	also:    []string{"bool_and", "all"},
	Summary: "True if the condition is true for all rows. Rows where it is null do not count.",
	Args:    []string{"condition"},
	MinArgs: 1,
	Check:   checkBool,
	Examples: []Example{
		{Call: "every(this.v > 1)", Values: `[true, null, true]`, Result: `true`},
		{Call: "every(this.v > 1)", Values: `[true, false]`, Result: `false`},
		{Call: "every(this.v > 1)", Values: `[null]`, Result: `null`},
	},
}, func(*Call) everyTrue { return everyTrue{} })

// everyTrue looks for false.
type everyTrue struct{ seen }

func (a *everyTrue) Merge(other Accumulator) { a.seen |= other.(*everyTrue).seen }

func (a *everyTrue) Result() (Value, error) {
	if a.seen == 0 {
		return Null(), nil
	}
	return Bool(a.seen&seenFalse == 0), nil
}
