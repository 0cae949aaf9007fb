package agg

import (
	"cmp"
	"encoding/binary"
	"slices"
)

var topKFunction = define(Function{
	Name:    "top_k",
	also:    []string{"mode"},
	Summary: "The k most frequent values with their exact counts, the most frequent first, at a tie in the order of collect_set. Nulls are no values. All different values are counted, so their number is bounded.",
	Args:    []string{"value"},
	MinArgs: 1,
	Options: append([]Option{{Name: "k", Kind: OptionInteger, Min: 1, Max: 10_000, Summary: "How many values to give."}},
		append(limitOptions(100_000), limitBytes())...),
	Check: checkValue,
	Examples: []Example{
		{Call: "top_k(this.v, 2)", Values: `["a", "b", "c", "b", null, "a", "b"]`, Result: `[{"count":3,"value":"b"},{"count":2,"value":"a"}]`},
		{Call: "top_k(this.v, k: 3)", Values: `[2, 1, 1.0, "1"]`, Result: `[{"count":2,"value":1},{"count":1,"value":2},{"count":1,"value":"1"}]`},
		{Call: "top_k(this.v, 2)", Values: `[null]`, Result: `null`},
	},
}, func(c *Call) topK { return topK{call: c} })

// topK counts each value. Past a limit it keeps nothing but the fact.
type topK struct {
	call   *Call
	counts map[Value]int64
	fresh  map[Value]int64 // counted since Saved, where the owner calls it
	bytes  int64           // of texts
	over   bool
}

// tally is a value and how often it came.
type tally struct {
	value Value
	count int64
}

func (a *topK) Add(in Input) { a.count(in.Value, 1) }

func (a *topK) count(v Value, n int64) {
	if v.IsNull() || a.over {
		return
	}
	v = v.Canonical()
	old, ok := a.counts[v]
	if !ok {
		a.bytes += int64(len(v.text))
		if a.call.exceeds(int64(len(a.counts)+1), a.bytes) {
			a.drop()
			return
		}
		if a.counts == nil {
			a.counts = make(map[Value]int64)
		}
		v = v.Clone()
	}
	a.counts[v] = old + n
	if a.fresh != nil {
		a.addFresh(v, ok, n)
	}
}

// addFresh counts v, which has its own text unless it is known.
func (a *topK) addFresh(v Value, known bool, n int64) {
	old, ok := a.fresh[v]
	if !ok && known {
		v = v.Clone()
	}
	a.fresh[v] = old + n
}

func (a *topK) drop() { *a = topK{call: a.call, over: true} }

func (a *topK) Merge(other Accumulator) {
	o := other.(*topK)
	if o.over {
		a.drop()
	}
	for v, n := range o.counts {
		a.count(v, n)
	}
}

func (a *topK) Result() (Value, error) {
	if a.over {
		return a.call.tooMuch("different values", "raise the option or count fewer kinds of values")
	}
	if len(a.counts) == 0 {
		return Null(), nil
	}
	tallies := sortedTallies(a.counts)
	slices.SortStableFunc(tallies, func(s, t tally) int { return cmp.Compare(t.count, s.count) })
	k := min(len(tallies), int(a.call.Params[0].AsInt()))
	b := []byte{'['}
	for i, t := range tallies[:k] {
		if i > 0 {
			b = append(b, ',')
		}
		b = Int(t.count).AppendJSON(append(b, `{"count":`...))
		b = t.value.AppendJSON(append(b, `,"value":`...))
		b = append(b, '}')
	}
	return JSON(string(append(b, ']'))), nil
}

// sortedTallies lists the counts by value.
func sortedTallies(counts map[Value]int64) []tally {
	tallies := make([]tally, 0, len(counts))
	for v, n := range counts {
		tallies = append(tallies, tally{v, n})
	}
	slices.SortFunc(tallies, func(s, t tally) int { return s.value.Compare(t.value) })
	return tallies
}

func (a *topK) Append(b []byte) []byte { return a.append(b, a.counts) }

func (a *topK) AppendNew(b []byte) []byte {
	if a.fresh == nil {
		return a.Append(b)
	}
	return a.append(b, a.fresh)
}

func (a *topK) Saved() {
	if !a.over {
		a.fresh = make(map[Value]int64)
	}
}

func (a *topK) append(b []byte, counts map[Value]int64) []byte {
	if a.over {
		return append(b, 1)
	}
	b = binary.AppendUvarint(append(b, 0), uint64(len(counts)))
	for _, t := range sortedTallies(counts) {
		b = binary.AppendUvarint(t.value.Append(b), uint64(t.count))
	}
	return b
}

func (a *topK) decode(d *reader) {
	if a.over = d.overLimit(); a.over {
		return
	}
	for range d.count(2) {
		v, n := d.value(), d.uvarint()
		if v.IsNull() || !v.IsFinite() || n == 0 || n > 1<<62 {
			d.fail("no count of a value")
		} else {
			a.count(v, int64(n))
		}
	}
}
