package windowing

import (
	"errors"
	"fmt"
	"slices"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// ErrFilter says that a `where` gave something other than true, false or null.
var ErrFilter = errors.New("a filter takes true, false or null")

// Aggregate is one output field of an operator that aggregates.
type Aggregate struct {
	Name string // the output field
	Call *agg.Call
}

// ArgLayout says what Row.Args holds for an operator that aggregates: the value
// of each expression that its calls name, each text once, however many calls use
// it. The binding evaluates Exprs in order into Args, runs Check, and marks the
// row Invalid where that fails: operators take the values as they are. It is
// immutable and may be used by several goroutines.
type ArgLayout struct {
	aggregates []Aggregate
	exprs      []string
	slots      []argSlot
}

// argSlot says where the arguments of one call are in Row.Args, -1: it has none.
type argSlot struct{ value, by, where int }

// NewArgLayout lays out the arguments of the aggregates.
func NewArgLayout(aggregates []Aggregate) *ArgLayout {
	l := &ArgLayout{aggregates: aggregates}
	for _, a := range aggregates {
		slot := argSlot{value: -1, by: -1, where: -1}
		for i, at := range []*int{&slot.value, &slot.by} {
			if i < len(a.Call.Exprs) {
				*at = l.place(a.Call.Exprs[i])
			}
		}
		if a.Call.Where != "" {
			slot.where = l.place(a.Call.Where)
		}
		l.slots = append(l.slots, slot)
	}
	return l
}

func (l *ArgLayout) place(expr string) int {
	if i := slices.Index(l.exprs, expr); i >= 0 {
		return i
	}
	l.exprs = append(l.exprs, expr)
	return len(l.exprs) - 1
}

// Exprs gives the Bloblang texts whose values are Row.Args, in that order.
func (l *ArgLayout) Exprs() []string { return l.exprs }

// Check says whether every aggregate can take the row; the error names the
// output field. A row that one aggregate refuses enters none. Filters are looked
// at first: what does not take part is not checked.
func (l *ArgLayout) Check(row *Row) error { return l.CheckEvaluated(row, nil) }

// CheckEvaluated is Check where some of the expressions failed, by their index in
// Exprs; their Args are null. A failure counts only for the aggregates that take
// the row in.
func (l *ArgLayout) CheckEvaluated(row *Row, failed map[int]error) error {
	for i := range l.slots {
		if err := l.check(i, row, failed); err != nil {
			return fmt.Errorf("aggregate %q: %w", l.aggregates[i].Name, err)
		}
	}
	return nil
}

func (l *ArgLayout) check(i int, row *Row, failed map[int]error) error {
	slot, call := &l.slots[i], l.aggregates[i].Call
	if w := slot.where; w >= 0 {
		if err := failed[w]; err != nil {
			return err
		}
		if v := row.Args[w]; v.Kind() != agg.KindBool && !v.IsNull() {
			return fmt.Errorf("where: %s gave the %s %s: %w", call.Where, v.Kind(), v.AppendJSON(nil), ErrFilter)
		}
	}
	in, ok := l.input(i, row)
	if !ok {
		return nil
	}
	for _, arg := range [...]int{slot.value, slot.by} {
		if err := failed[arg]; err != nil {
			return err
		}
	}
	if call.Function.Check == nil {
		return nil
	}
	return call.Function.Check(call, in)
}

// input is what call i takes from the row; ok is false where its filter holds
// the row back.
func (l *ArgLayout) input(i int, row *Row) (in agg.Input, ok bool) {
	slot := &l.slots[i]
	if slot.where >= 0 && !row.Args[slot.where].AsBool() {
		return in, false
	}
	in.Time, in.Arrival = row.Time, row.Arrival
	if slot.value >= 0 {
		in.Value = row.Args[slot.value]
	}
	if slot.by >= 0 {
		in.By = row.Args[slot.by]
	}
	return in, true
}
