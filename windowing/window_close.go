package windowing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// closing is the window that Advance is handing out.
type closing struct {
	slice  *timeSlice // nil: none
	groups []*group   // not handed out yet, ordered by key
	order  []*group   // memory of groups, for the next window
}

// cursor is the last group that was handed out of a window that has more of
// them. It is state, so that a restart goes on behind it.
type cursor struct {
	set   bool
	span  Span
	group string
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
	w.results(s.span, c.groups[:n], out)
	for _, g := range c.groups[:n] {
		g.dirty = false // nothing of it needs to be saved any more
	}
	w.state.groups -= n
	w.progress = w.progress || w.cursor.set
	w.cursor = cursor{}
	if n < len(c.groups) {
		w.cursor, w.progress = cursor{set: true, span: s.span, group: c.groups[n-1].key}, true
		c.groups = c.groups[n:]
		return n
	}
	c.end()
	return n
}

// begin sorts the groups of a slice, once for all the calls that hand them out.
func (c *closing) begin(s *timeSlice) {
	c.slice = s
	for _, g := range s.groups {
		c.order = append(c.order, g)
	}
	slices.SortFunc(c.order, func(a, b *group) int { return strings.Compare(a.key, b.key) })
	c.groups = c.order
}

func (c *closing) end() {
	clear(c.order)
	*c = closing{order: c.order[:0]}
}

// results emits a row for each group. What the rows of one call consist of lies
// in a few blocks of memory: they are rendered and let go together.
func (w *Window) results(window Span, groups []*group, out *Output) {
	fields := len(w.config.Aggregates)
	rows := make([]Result, len(groups))
	values := make([]agg.Value, len(groups)*fields)
	ends := make([]int, 0, len(groups))
	size := 0
	w.payload = w.payload[:0]
	w.key = AppendSpan(w.key[:0], window)
	for _, g := range groups {
		size += len(g.key)
	}
	keys := make([]byte, 0, size)
	for i, g := range groups {
		from := len(keys)
		keys = append(keys, g.key...)
		row := &rows[i]
		*row = Result{
			Time: window.last(), Timing: OnTime, Revision: 1, Spanned: true, Start: window.Start, End: window.End,
			Key: keys[from:len(keys):len(keys)], Values: values[:fields:fields],
		}
		values = values[fields:]
		row.Err = w.values(g, row.Values)
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
func (w *Window) values(g *group, values []agg.Value) error {
	var errs []error
	for i, acc := range g.accumulators {
		v, err := acc.Result()
		if err != nil {
			v = agg.Null()
			errs = append(errs, fmt.Errorf("aggregate %q: %w", w.config.Aggregates[i].Name, err))
		}
		values[i] = v
	}
	return errors.Join(errs...)
}
