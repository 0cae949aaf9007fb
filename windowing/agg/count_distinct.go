package agg

var countDistinctFunction = define(Function{
	Name:    "count_distinct",
	also:    []string{"distinct", "distinct_count"},
	Summary: "The exact number of different values; 1 and 1.0 are one, \"1\" is another. Nulls are no values. The values are kept, so it is bounded; approx_count_distinct is not.",
	Args:    []string{"value"},
	MinArgs: 1,
	Options: append(limitOptions(100_000), limitBytes()),
	Check:   checkValue,
	Examples: []Example{
		{Call: "count_distinct(this.v)", Values: `[1, 1.0, "1", null, {"a": 1, "b": 2}, {"b": 2, "a": 1.0}]`, Result: `3`},
		{Call: "count_distinct(this.v)", Values: `[null]`, Result: `0`},
	},
}, func(c *Call) countDistinct { return countDistinct{set{call: c}} })

// countDistinct keeps the values.
type countDistinct struct{ set }

func (a *countDistinct) Add(in Input)            { a.add(in.Value) }
func (a *countDistinct) Merge(other Accumulator) { a.merge(&other.(*countDistinct).set) }

func (a *countDistinct) Result() (Value, error) {
	if a.over {
		return a.call.tooMuch("different values", "raise the option or use approx_count_distinct")
	}
	return Int(int64(a.len())), nil
}
