package windowing

import (
	"errors"
	"fmt"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// closing is the window that Advance is handing out.
type closing struct {
	slice  *timeSlice // nil: none
	groups []ranked   // not handed out yet, ordered by key
	order  []ranked   // memory of groups, for the next window
}

// cursor is the last group that was handed out of a window that has more of
// them. It is state, so that a restart goes on behind it.
type cursor struct {
	set   bool
	span  Span
	group []byte
}

// Advance emits the windows that end at or before in.Close, or before a close
// that was reached earlier.
func (w *Window) Advance(in Instant, limit int, out *Output) (done bool) {
	if in.Close > w.reached {
		w.reached, w.progress = in.Close, true
	}
	closed := 0
	for _, s := range w.state.ordered {
		if s.span.End > w.reached || limit <= 0 {
			break
		}
		limit -= w.emit(s, limit, out)
		if w.closing.slice != nil {
			break
		}
		closed++
	}
	w.state.drop(closed)
	return len(w.state.ordered) == 0 || w.state.ordered[0].span.End > w.reached
}

// emit hands out at most limit (> 0) groups of the oldest slice and says how
// many. The slice is through when no closing is left.
func (w *Window) emit(s *timeSlice, limit int, out *Output) int {
	c := &w.closing
	if c.slice == nil {
		c.begin(s)
	}
	n := min(limit, len(c.groups))
	w.results(s, c.groups[:n], out)
	for _, g := range c.groups[:n] {
		s.dirty[g.number] = false // nothing of it needs to be saved any more
	}
	w.state.groups -= n
	w.progress = w.progress || w.cursor.set
	w.cursor = cursor{}
	if n < len(c.groups) {
		w.cursor, w.progress = cursor{set: true, span: s.span, group: s.groups.key(c.groups[n-1].number)}, true
		c.groups = c.groups[n:]
		return n
	}
	c.end()
	return n
}

// begin sorts the groups of a slice, once for all the calls that hand them out.
func (c *closing) begin(s *timeSlice) {
	c.slice = s
	c.order = s.groups.rank(c.order)
	c.groups = c.order
}

func (c *closing) end() {
	*c = closing{order: c.order[:0]}
}

// results emits a row for each group. What the rows of one call consist of lies
// in a few blocks of memory: they are rendered and let go together.
func (w *Window) results(s *timeSlice, groups []ranked, out *Output) {
	window := s.span
	fields := len(w.config.Aggregates)
	rows := make([]Result, len(groups))
	values := make([]agg.Value, len(groups)*fields)
	ends := make([]int, 0, len(groups))
	size := 0
	w.payload = w.payload[:0]
	w.key = AppendSpan(w.key[:0], window)
	for _, g := range groups {
		size += len(s.groups.key(g.number))
	}
	keys := make([]byte, 0, size)
	for i, g := range groups {
		from := len(keys)
		keys = append(keys, s.groups.key(g.number)...)
		row := &rows[i]
		*row = Result{
			Time: window.last(), Timing: OnTime, Revision: 1, Spanned: true, Start: window.Start, End: window.End,
			Key: keys[from:len(keys):len(keys)], Values: values[:fields:fields],
		}
		values = values[fields:]
		row.Err = w.values(s.of(g.number), row.Values)
		w.payload = w.identity.AppendRowKey(w.payload, row.Key, w.key)
		ends = append(ends, len(w.payload))
	}
	text, from := string(w.payload), 0
	for i := range rows {
		rows[i].RowKey = text[from:ends[i]]
		from = ends[i]
		out.Emit(&rows[i])
	}
}

// values reads the aggregates of a group. Those that fail are null, the error
// names them.
func (w *Window) values(accumulators []agg.Accumulator, values []agg.Value) error {
	var errs []error
	for i, acc := range accumulators {
		v, err := acc.Result()
		if err != nil {
			v = agg.Null()
			errs = append(errs, fmt.Errorf("aggregate %q: %w", w.config.Aggregates[i].Name, err))
		}
		values[i] = v
	}
	return errors.Join(errs...)
}
