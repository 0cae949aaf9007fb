package windowing

import (
	"fmt"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// GroupField is one grouping expression.
type GroupField struct {
	Name string // the output field
	Expr string // Bloblang
}

// OutputMode says which rows of a window operator come out, and when. The words
// are those of Spark's Structured Streaming.
type OutputMode uint8

// The output modes.
const (
	// Append emits every group of a window once, when the window is final, and
	// again where allowed lateness lets a row in after that.
	Append OutputMode = iota
	// Update emits, at the end of each batch, every group that changed in it with
	// its full value, for each of its windows. A close emits nothing, it drops state.
	Update
	// Complete emits all groups of all windows at the end of each batch that
	// changed one. Nothing is late, nothing is dropped.
	Complete
)

// OutputModes are the modes as users write them.
var OutputModes = [...]string{Append: "append", Update: "update", Complete: "complete"}

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
	Mode       OutputMode
	// Lateness (>= 0) is how long after its end a window takes rows in.
	Lateness time.Duration
	// Early (>= 0) is how often, by the wall clock, a group that changed comes out
	// while its windows are not final; in append mode only. It is no part of the
	// definition. 0: never.
	Early time.Duration
	// Having decides whether a result comes out, nil: all do. An error goes onto
	// the row, which comes out then. It may set res.Message for Binding.Render. A
	// row that came out and does not meet it any more is taken back by a result
	// with the timing Deleted and without values.
	Having Condition
	// Fill and FillFor (> 0) give rows to groups that have none in a window, when
	// it is final, for that long after the end of their last one with rows; not in
	// complete mode, where no window is final.
	Fill    Fill
	FillFor time.Duration
}

// Revises says that the operator may emit a row key more than once.
func (c *WindowConfig) Revises() bool { return c.Mode != Append || c.Lateness > 0 || c.Early > 0 }

// Window aggregates rows by window and group. A window is final at end <= close;
// a row is late for it iff end + lateness <= late. Rows are kept by slice, see
// Assigner: windows merge their slices when they come out.
//
// Invariants: rows whose windows the operator has closed are late whatever pair
// it hears later (reached); slices exist only with groups in them; a slice or a
// window that was never saved is never deleted from the store either; no window
// up to emitted is final a second time.
type Window struct {
	resident
	config    WindowConfig
	args      *ArgLayout
	identity  *Identity
	state     sliceTable
	revisions revisionTable  // of modes that revise
	reached   watermark.Time // the largest close so far
	emitted   Span           // the last window that was handed out as final
	filling   filling
	early     early
	blocks    blockTable
	closing   closing
	cursor    cursor
	progress  bool              // reached, emitted or the cursor changed since the last Save
	weight    int               // of the record of a group, in bytes
	failure   error             // of the step: state could not be read back
	group     []agg.Accumulator // memory for those of one group
	merged    *timeSlice        // memory for one group of several slices
	waiting   rowBlock          // of Process
	drawn     []drawn           // of results
	key       []byte
	payload   []byte
	record    []byte
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
		state: newSliceTable(cfg.Aggregates, cfg.Revises()), revisions: newRevisionTable(), filling: newFilling(cfg.FillFor),
		merged:  newTimeSlice(Span{}, cfg.Aggregates),
		reached: watermark.Unset, emitted: endedBy(watermark.Unset),
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

// Process adds every row to its slice.
func (w *Window) Process(in Instant, rows []Row, out *Output) {
	late := max(in.Late, w.reached)
	gone := w.gone(late)
	var s *timeSlice // of the row before: most rows fall into the same one
	for i := range rows {
		row := &rows[i]
		if row.Flag != Data {
			out.Pass(*row)
			continue
		}
		if s == nil || !s.span.Contains(row.Time) {
			if s = w.slice(row.Time, gone); s == nil {
				out.Late(*row, w.config.Name, late.Sub(row.Time), w.config.PassLate)
				continue
			}
		}
		switch {
		case w.state.groups < manyGroups:
			w.add(s, row)
		case w.waiting.add(s, row):
			w.apply(&w.waiting)
		}
	}
	w.apply(&w.waiting)
	if w.failure != nil {
		out.Break(w.failure)
		return
	}
	w.revise(in, gone)
}

// gone stands behind the windows that take no rows any more at an instant.
func (w *Window) gone(at watermark.Time) Span {
	if w.config.Mode == Complete {
		return endedBy(watermark.Unset)
	}
	return endedBy(at.Add(-w.config.Lateness))
}

// slice gives the slice of a time, nil where all of its windows are gone.
func (w *Window) slice(t watermark.Time, gone Span) *timeSlice {
	span := w.config.Assigner.Slice(t)
	if _, open := w.config.Assigner.Next(span, gone); !open {
		return nil
	}
	s := w.state.open(span)
	w.blocks.changed(s)
	return s
}

// add applies a row that is not late.
func (w *Window) add(s *timeSlice, row *Row) {
	number := w.place(s, row, hashKey(row.Key))
	for i, c := range s.columns {
		if in, ok := w.args.input(i, row); ok {
			c.At(number).Add(in)
		}
	}
}

// place finds or makes the group of a row that changes it.
func (w *Window) place(s *timeSlice, row *Row, hash uint32) (number uint32) {
	number, added := w.state.place(s, row.Key, hash)
	if added {
		w.bring(s, number)
	}
	w.state.touch(s, number)
	if w.state.revises {
		w.state.freshen(s, number, added)
	}
	return number
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
	if w.config.Mode != Append {
		settings = append(settings, Setting{Field: "output_mode", Value: OutputModes[w.config.Mode]})
	}
	// A longer one would bring back windows that are gone, without their rows.
	if w.config.Lateness > 0 {
		settings = append(settings, Setting{Field: "allowed_lateness", Value: w.config.Lateness.String()})
	}
	if w.config.Fill != NoFill { // without it nobody knows which groups there were
		settings = append(settings, Setting{Field: "fill", Value: Fills[w.config.Fill]})
	}
	return settings
}

// Windows is the number of stretches of event time that have rows: of windows
// where they do not overlap, else of slices.
func (w *Window) Windows() int { return len(w.state.ordered) }

// Groups is the number of groups over all slices, wherever they are.
func (w *Window) Groups() int { return w.state.groups + w.state.away }

// Sizes gives Windows and Groups, for metrics.
func (w *Window) Sizes() (windows, groups int) { return w.Windows(), w.Groups() }
