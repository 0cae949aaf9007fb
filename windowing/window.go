package windowing

import (
	"fmt"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// GroupField is one grouping expression.
type GroupField struct {
	Name string // the output field
	Expr string // Bloblang
}

// WindowConfig is what a window operator is made of.
type WindowConfig struct {
	Name     string // the operator's name, part of every row key
	Assigner Assigner
	// GroupBy and Aggregates stand in ascending order of their names: the maps
	// that they are written in have no order, and the state needs one. Row.Key
	// holds one value for each grouping expression, Row.Args is laid out by
	// NewArgLayout(Aggregates).
	GroupBy    []GroupField
	Aggregates []Aggregate
	PassLate   bool // `late: pass`: late rows go on down the chain
}

// Window aggregates rows by window and group, and emits every group of a window
// once, when the window is final. A window is final at end <= close; a row is
// late for it iff end <= late.
//
// Invariants: rows whose window the operator has closed are late whatever pair
// it hears later (reached); slices exist only with groups in them; a slice that
// was never saved is never deleted from the store either.
type Window struct {
	config   WindowConfig
	args     *ArgLayout
	identity *Identity
	state    sliceTable
	reached  watermark.Time // the largest close so far
	closing  closing
	cursor   cursor
	progress bool // reached or the cursor changed since the last Save
	key      []byte
	payload  []byte
	record   []byte
}

var _ Operator = (*Window)(nil)

// NewWindow makes a window operator with empty state. Names out of order are a
// mistake of the program and panic.
func NewWindow(cfg WindowConfig) *Window {
	var names, fields []string
	for _, g := range cfg.GroupBy {
		names = append(names, g.Name)
	}
	for _, a := range cfg.Aggregates {
		fields = append(fields, a.Name)
	}
	if !ascending(names) || !ascending(fields) {
		panic(fmt.Sprintf("windowing: group_by and aggregates of %q are not in ascending order of unique names", cfg.Name))
	}
	return &Window{
		config: cfg, args: NewArgLayout(cfg.Aggregates), identity: NewIdentity(cfg.Name),
		state: newSliceTable(len(cfg.Aggregates)), reached: watermark.Unset,
	}
}

func ascending(names []string) bool {
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			return false
		}
	}
	return true
}

// Process adds every row to its window.
func (w *Window) Process(in Instant, rows []Row, out *Output) {
	late := max(in.Late, w.reached)
	var s *timeSlice // of the row before: most rows fall into the same one
	for i := range rows {
		row := &rows[i]
		if row.Flag != Data {
			out.Pass(*row)
			continue
		}
		if s == nil || !s.span.Contains(row.Time) {
			if s = w.slice(row.Time, late); s == nil {
				out.Late(*row, w.config.Name, late.Sub(row.Time), w.config.PassLate)
				continue
			}
		}
		w.add(s, row)
	}
}

// slice gives the slice of a time, nil where no window of it is open any more.
func (w *Window) slice(t, late watermark.Time) *timeSlice {
	span := w.config.Assigner.Slice(t)
	if _, open := w.config.Assigner.Next(span, late); !open {
		return nil
	}
	return w.state.open(span)
}

// add applies a row that is not late.
func (w *Window) add(s *timeSlice, row *Row) {
	number, added := w.state.place(s, row.Key)
	accumulators := s.of(number)
	if added {
		for i, a := range w.config.Aggregates {
			accumulators[i] = a.Call.Function.New(a.Call)
		}
	}
	w.state.touch(s, number)
	for i, acc := range accumulators {
		if in, ok := w.args.input(i, row); ok {
			acc.Add(in)
		}
	}
}

// Definition is what makes the stored state meaningful.
func (w *Window) Definition() []Setting {
	settings := w.config.Assigner.Settings()
	for _, g := range w.config.GroupBy {
		settings = append(settings, Setting{Field: "group_by." + g.Name, Value: g.Expr})
	}
	for _, a := range w.config.Aggregates {
		settings = append(settings, Setting{Field: "aggregates." + a.Name, Value: a.Call.Text})
	}
	return settings
}

// Windows is the number of windows that have rows and are not final yet.
func (w *Window) Windows() int { return len(w.state.ordered) }

// Groups is the number of groups over all windows.
func (w *Window) Groups() int { return w.state.groups }
