package agg

import (
	"cmp"
	"encoding/binary"
	"slices"
)

var collectFunction = define(Function{
	Name:    "collect",
	also:    []string{"list", "array_agg", "collect_list"},
	Summary: "The list of all values in the order of event time, then arrival. Nulls are no values.",
	Args:    []string{"value"},
	MinArgs: 1,
	Options: append(limitOptions(10_000), limitBytes()),
	Check:   checkValue,
	Examples: []Example{
		{Call: "collect(this.v)", Values: `["b", 1.0, null, "b", {"z": 1, "a": 2}]`, Result: `["b",1,"b",{"a":2,"z":1}]`},
		{Call: "collect(this.v)", Values: `[null]`, Result: `null`},
	},
}, func(c *Call) collect { return collect{call: c} })

// collect keeps all values in the order of Add, so that what is new stands at
// the end. Past a limit it keeps nothing but the fact.
type collect struct {
	call  *Call
	items []placed
	bytes int64 // of texts
	saved int   // items before the last Saved
	over  bool
}

func (a *collect) Add(in Input) {
	if !in.Value.IsNull() && !a.over {
		a.keep(placed{in.Value.Clone(), in.position()})
	}
}

func (a *collect) keep(p placed) {
	a.bytes += int64(len(p.value.text))
	if a.over || a.call.exceeds(int64(len(a.items)+1), a.bytes) {
		*a = collect{call: a.call, over: true}
		return
	}
	a.items = append(a.items, p)
}

func (a *collect) Merge(other Accumulator) {
	o := other.(*collect)
	if o.over {
		*a = collect{call: a.call, over: true}
	}
	for _, p := range o.items {
		a.keep(p)
	}
}

func (a *collect) Result() (Value, error) {
	if a.over {
		return a.call.tooMuch("values", "raise the option or collect less")
	}
	items := a.items
	if !slices.IsSortedFunc(items, byPosition) {
		items = slices.SortedStableFunc(slices.Values(items), byPosition)
	}
	values := make([]Value, len(items))
	for i, p := range items {
		values[i] = p.value
	}
	return list(values), nil
}

func byPosition(p, q placed) int {
	return cmp.Or(cmp.Compare(p.at.time, q.at.time), cmp.Compare(p.at.arrival, q.at.arrival))
}

func (a *collect) Append(b []byte) []byte { return a.append(b, a.items) }

func (a *collect) AppendNew(b []byte) []byte { return a.append(b, a.items[a.saved:]) }

func (a *collect) Saved() { a.saved = len(a.items) }

func (a *collect) append(b []byte, items []placed) []byte {
	if a.over {
		return append(b, 1)
	}
	b = binary.AppendUvarint(append(b, 0), uint64(len(items)))
	for i := range items {
		b = items[i].Append(b)
	}
	return b
}

func (a *collect) decode(d *reader) {
	if a.over = d.overLimit(); a.over {
		return
	}
	for range d.count(1) {
		var p placed
		if p.decode(d); p.value.IsNull() {
			d.fail("null in a list")
		} else {
			a.keep(p)
		}
	}
}
