package agg

import (
	"encoding/binary"

	"github.com/connect-windowed/connect-windowed/watermark"
)

var firstFunction = define(Function{
	Name:    "first",
	also:    []string{"first_value"},
	Summary: "The value of the row with the smallest event time, at a tie of the one that arrived first. Nulls are no values.",
	Args:    []string{"value"},
	MinArgs: 1,
	Check:   checkValue,
	Examples: []Example{
		{Call: "first(this.v)", Values: `[null, "a", 2]`, Result: `"a"`},
		{Call: "first(this.v)", Values: `[{"b": 1.0, "a": []}, 2]`, Result: `{"a":[],"b":1}`},
		{Call: "first(this.v)", Values: `[null]`, Result: `null`},
	},
}, func(*Call) first { return first{} })

// first keeps the earliest value.
type first struct{ placed }

func (a *first) Add(in Input) {
	if at := in.position(); !in.Value.IsNull() && (a.value.IsNull() || at.before(a.at)) {
		a.value, a.at = in.Value.Clone(), at
	}
}

func (a *first) Merge(other Accumulator) {
	if o := other.(*first); !o.value.IsNull() && (a.value.IsNull() || o.at.before(a.at)) {
		a.placed = o.placed
	}
}

// placed is a value with the place of its row; the null Value is none.
type placed struct {
	value Value
	at    position
}

func (p *placed) Result() (Value, error) { return p.value, nil }

func (p *placed) Append(b []byte) []byte {
	b = p.value.Append(b)
	if p.value.IsNull() {
		return b
	}
	b = binary.AppendVarint(b, int64(p.at.time))
	return binary.AppendVarint(b, p.at.arrival)
}

func (p *placed) decode(d *reader) {
	p.value = d.value()
	if !p.value.IsFinite() {
		d.fail("not a finite number")
	}
	if !p.value.IsNull() {
		p.at = position{watermark.Time(d.varint()), d.varint()}
	}
}
