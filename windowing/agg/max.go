package agg

var maxFunction = define(Function{
	Name:    "max",
	Summary: "The largest number. Integers are compared exactly, also with floats.",
	Args:    []string{"number"},
	MinArgs: 1,
	Check:   checkNumber,
	Examples: []Example{
		{Call: "max(this.v)", Values: `[3, null, -1.5, 2]`, Result: `3`},
		{Call: "max(this.v)", Values: `[9007199254740993, 9007199254740992.0]`, Result: `9007199254740993`},
		{Call: "max(this.v)", Values: `[null]`, Result: `null`},
	},
}, func(*Call) maximum { return maximum{} })

// maximum keeps the largest number so far.
type maximum struct{ numeric }

func (a *maximum) Add(in Input)            { a.keep(in.Value, 1) }
func (a *maximum) Merge(other Accumulator) { a.keep(other.(*maximum).value(), 1) }
