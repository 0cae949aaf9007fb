package agg

var collectSetFunction = define(Function{
	Name:    "collect_set",
	also:    []string{"set", "unique"},
	Summary: "The list of the different values, sorted: false, true, numbers, texts, then lists and objects by their text. Nulls are no values.",
	Args:    []string{"value"},
	MinArgs: 1,
	Options: append(limitOptions(10_000), limitBytes()),
	Check:   checkValue,
	Examples: []Example{
		{Call: "collect_set(this.v)", Values: `["b", 2, 10, "a", 2.0, null, true, [1]]`, Result: `[true,2,10,"a","b",[1]]`},
		{Call: "collect_set(this.v)", Values: `[null]`, Result: `null`},
	},
}, func(c *Call) collectSet { return collectSet{set{call: c}} })

// collectSet keeps the values.
type collectSet struct{ set }

func (a *collectSet) Add(in Input)            { a.add(in.Value) }
func (a *collectSet) Merge(other Accumulator) { a.merge(&other.(*collectSet).set) }

func (a *collectSet) Result() (Value, error) {
	if a.over {
		return a.call.tooMuch("different values", "raise the option or collect less")
	}
	return list(a.sorted()), nil
}

// list is a JSON list of values, null where there are none.
func list(values []Value) Value {
	if len(values) == 0 {
		return Null()
	}
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = v.Canonical().AppendJSON(b)
	}
	return JSON(string(append(b, ']')))
}
