package agg

var minByFunction = define(Function{
	Name:    "min_by",
	also:    []string{"arg_min"},
	Summary: "The value of the row with the smallest order, which is a number; at a tie of the earliest such row. Rows where either is null do not count.",
	Args:    []string{"value", "order"},
	MinArgs: 2,
	Check:   checkOrdered,
	Examples: []Example{
		{Call: "min_by(this.name, this.v)", Values: `[["a", 3], ["b", 1.5], ["c", 1.5], [null, 0], ["d", null]]`, Result: `"b"`},
		{Call: "min_by(this.name, this.v)", Values: `[]`, Result: `null`},
	},
}, func(*Call) minBy { return minBy{} })

// minBy keeps the value with the smallest order.
type minBy struct{ extreme }

func (a *minBy) Add(in Input)            { a.offer(in, -1) }
func (a *minBy) Merge(other Accumulator) { a.take(&other.(*minBy).extreme, -1) }

// extreme is the value of the row whose order is the largest or smallest.
type extreme struct {
	placed
	order numeric
}

// offer takes a row whose order compares with the present one as wanted.
func (e *extreme) offer(in Input, want int) {
	if in.Value.IsNull() || in.By.IsNull() {
		return
	}
	if e.wins(in.By, in.position(), want) {
		e.value, e.at = in.Value.Clone(), in.position()
		e.order = numeric{kind: in.By.kind, bits: in.By.bits}
	}
}

func (e *extreme) take(o *extreme, want int) {
	if !o.value.IsNull() && e.wins(o.order.value(), o.at, want) {
		*e = *o
	}
}

// wins tells whether a row with this order and place is to be kept instead.
func (e *extreme) wins(order Value, at position, want int) bool {
	if e.value.IsNull() {
		return true
	}
	c := compareNumbers(order, e.order.value())
	return c == want || c == 0 && at.before(e.at)
}

func (e *extreme) Append(b []byte) []byte {
	b = e.placed.Append(b)
	if e.value.IsNull() {
		return b
	}
	return e.order.Append(b)
}

func (e *extreme) decode(d *reader) {
	e.placed.decode(d)
	if e.value.IsNull() {
		return
	}
	e.order.decode(d)
	if e.order.kind == KindNull {
		d.fail("a value without an order")
	}
}
