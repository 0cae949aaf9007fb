package agg

var minFunction = define(Function{
	Name:    "min",
	Summary: "The smallest number. Integers are compared exactly, also with floats.",
	Args:    []string{"number"},
	MinArgs: 1,
	Check:   checkNumber,
	Examples: []Example{
		{Call: "min(this.v)", Values: `[3, null, -1.5, 2]`, Result: `-1.5`},
		{Call: "min(this.v)", Values: `[9007199254740993, 9007199254740992.0]`, Result: `9007199254740992`},
		{Call: "min(this.v)", Values: `[null]`, Result: `null`},
	},
}, func(*Call) minimum { return minimum{} })

// minimum keeps the smallest number so far.
type minimum struct{ numeric }

func (a *minimum) Add(in Input)            { a.keep(in.Value, -1) }
func (a *minimum) Merge(other Accumulator) { a.keep(other.(*minimum).value(), -1) }

// numeric is a number or null, without the text of a Value: 16 bytes and
// nothing for the collector to follow.
type numeric struct {
	bits uint64
	kind Kind
}

func (n numeric) value() Value { return Value{kind: n.kind, bits: n.bits} }

// keep takes v if there is no number yet or v compares with it as wanted. The
// canonical form makes 1 and 1.0 the same answer in every order.
func (n *numeric) keep(v Value, want int) {
	if v.IsNull() {
		return
	}
	if n.kind == KindNull || compareNumbers(v, n.value()) == want {
		v = v.Canonical()
		n.kind, n.bits = v.kind, v.bits
	}
}

func (n *numeric) Result() (Value, error) { return n.value(), nil }
func (n *numeric) Append(b []byte) []byte { return n.value().Append(b) }

func (n *numeric) decode(d *reader) {
	v := d.value()
	if !v.IsNumber() && !v.IsNull() || !v.IsFinite() {
		d.fail("not a number")
		return
	}
	n.kind, n.bits = v.kind, v.bits
}
