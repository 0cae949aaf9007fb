package agg

var lastFunction = define(Function{
	Name:    "last",
	also:    []string{"last_value", "latest"},
	Summary: "The value of the row with the largest event time, at a tie of the one that arrived last. Nulls are no values.",
	Args:    []string{"value"},
	MinArgs: 1,
	Check:   checkValue,
	Examples: []Example{
		{Call: "last(this.v)", Values: `["a", 2, null]`, Result: `2`},
		{Call: "last(this.v)", Values: `[null]`, Result: `null`},
	},
}, func(*Call) last { return last{} })

// last keeps the latest value.
type last struct{ placed }

func (a *last) Add(in Input) {
	if at := in.position(); !in.Value.IsNull() && (a.value.IsNull() || a.at.before(at)) {
		a.value, a.at = in.Value.Clone(), at
	}
}

func (a *last) Merge(other Accumulator) {
	if o := other.(*last); !o.value.IsNull() && (a.value.IsNull() || a.at.before(o.at)) {
		a.placed = o.placed
	}
}
