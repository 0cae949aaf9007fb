package windowing

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// closing is the window that Advance is handing out.
type closing struct {
	table  *timeSlice // its groups; nil: there is none
	window Span
	rows   int        // groups of it that have rows; those behind are filled
	last   bool       // nothing else needs the table
	groups []ranked   // not handed out yet, ordered by key
	order  []ranked   // memory of groups, for the next window
	merged *timeSlice // memory of table where a window has several slices
	pages  *pages     // where groups are on disk: groups are one page of them
}

// cursor is the last group that was handed out of a window that has more of
// them. It is state, so that a restart goes on behind it.
type cursor struct {
	set   bool
	span  Span
	group []byte
}

// Advance emits what is due: first the groups to be revised, then the windows
// that end at or before in.Close, or before a close that was reached earlier.
func (w *Window) Advance(in Instant, limit int, out *Output) (done bool) {
	if in.Close > w.reached {
		w.reached, w.progress = in.Close, true
	}
	w.wake(in)
	if limit = w.emitRevisions(in, limit, out); limit <= 0 && len(w.revisions.waiting) > 0 {
		return false
	}
	done = w.closeDue(limit, out)
	w.forget()
	w.rest()
	return done
}

// closes says that rows come out when windows are final: all of append mode, of
// update mode those of groups without rows.
func (w *Window) closes() bool {
	return w.config.Mode == Append || w.config.Mode == Update && w.config.Fill != NoFill
}

// closeDue emits final windows, the oldest first.
func (w *Window) closeDue(limit int, out *Output) (done bool) {
	if !w.closes() {
		return true
	}
	for {
		window, due := w.due()
		if !due {
			w.progress = w.progress || w.emitted != endedBy(w.reached)
			w.emitted = endedBy(w.reached)
			return true
		}
		if limit <= 0 {
			return false
		}
		limit -= w.emit(window, limit, out)
		if w.failure != nil {
			out.Break(w.failure)
			return false
		}
		if w.closing.table != nil {
			return false
		}
		w.emitted, w.progress = window, true
	}
}

// due gives the oldest window that is final and was not handed out. A slice
// without another window stands before those with one.
func (w *Window) due() (window Span, due bool) {
	if w.closing.table != nil {
		return w.closing.window, true
	}
	slices := w.state.ordered
	first := sort.Search(len(slices), func(i int) bool {
		_, more := w.config.Assigner.Next(slices[i].span, w.emitted)
		return more
	})
	window, due = w.nextFilled(w.emitted)
	if first < len(slices) {
		next, _ := w.config.Assigner.Next(slices[first].span, w.emitted)
		if !due || next.Compare(window) < 0 {
			window, due = next, true
		}
	}
	return window, due && window.End <= w.reached
}

// forget drops the slices and windows that nothing needs any more.
func (w *Window) forget() {
	gone := w.gone(w.reached)
	if w.closes() && w.emitted.Compare(gone) < 0 {
		gone = w.emitted
	}
	n := 0
	for ; n < len(w.state.ordered); n++ {
		if _, more := w.config.Assigner.Next(w.state.ordered[n].span, gone); more {
			break
		}
	}
	if w.state.drop(n); n > 0 {
		w.blocks.drop(w.state.ordered)
	}
	w.revisions.drop(gone)
	if w.emitted == endedBy(w.reached) {
		w.filling.expire(w.reached)
	}
}

// emit hands out at most limit (> 0) groups of a window and says how many. The
// window is through when no closing is left.
func (w *Window) emit(window Span, limit int, out *Output) int {
	c := &w.closing
	if c.table == nil {
		w.begin(window, limit)
	}
	if c.pages != nil && w.failure == nil {
		w.failure = w.page(limit)
	}
	if w.failure != nil {
		return 0
	}
	n := min(limit, len(c.groups))
	groups, table := c.groups[:n], c.table
	r := w.revisions.bySpan[window]
	w.results(window, OnTime, r, n, out, func(i int) source {
		number := groups[i].number
		key := table.groups.key(number)
		return source{key: key, accumulators: w.of(table, number), entry: w.entry(r, key), filled: w.config.Fill != NoFill && int(number) >= c.rows}
	})
	if c.last {
		for _, g := range groups {
			table.dirty[g.number] = false // nothing of it needs to be saved any more
		}
	}
	w.progress = w.progress || w.cursor.set
	w.cursor = cursor{}
	if n < len(c.groups) || c.pages != nil && len(c.pages.streams) > 0 {
		w.cursor, w.progress = cursor{set: true, span: window, group: table.groups.key(c.groups[n-1].number)}, true
		c.groups = c.groups[n:]
		return n
	}
	if w.config.Fill != NoFill {
		w.filling.seen(window, table, c.rows)
	}
	if r != nil {
		w.revisions.calm(r)
	}
	*c = closing{order: c.order[:0], merged: c.merged}
	return n
}

// begin sorts the groups of a window, once for all the calls that hand them out.
func (w *Window) begin(window Span, limit int) {
	c := &w.closing
	c.window = window
	if parts := w.state.within(window); isAway(parts) {
		c.table = w.empty()
		w.failure = w.beginPages(parts, limit)
		return
	}
	if parts := w.pieces(window); len(parts) == 1 && w.config.Fill == NoFill {
		c.table = parts[0]
		_, more := w.config.Assigner.Next(c.table.span, window)
		c.last = !more && w.config.Lateness == 0
	} else {
		c.table = w.merge(parts)
		if c.rows = c.table.groups.count(); w.config.Fill != NoFill {
			w.fillGroups(window, c.table)
		}
	}
	c.order = c.table.groups.rank(c.order)
	if w.config.Mode == Update {
		c.order = slices.DeleteFunc(c.order, func(g ranked) bool { return int(g.number) < c.rows })
	}
	c.groups = c.order
	if w.cursor.set && w.cursor.span == window {
		c.groups = c.order[sort.Search(len(c.order), func(i int) bool {
			return bytes.Compare(c.table.groups.key(c.order[i].number), w.cursor.group) > 0
		}):]
	}
}

// merge puts the groups of several slices together. The table is used again.
func (w *Window) merge(parts []*timeSlice) *timeSlice {
	merged := w.empty()
	w.mergeTables(merged, parts)
	return merged
}

// empty gives the table of the closing for groups that are not one slice's.
func (w *Window) empty() *timeSlice {
	c := &w.closing
	if c.merged == nil {
		c.merged = newTimeSlice(Span{}, w.config.Aggregates)
	}
	c.merged.clear()
	return c.merged
}

// mergeTables adds the groups of slices to a table.
func (w *Window) mergeTables(to *timeSlice, parts []*timeSlice) {
	for _, s := range parts {
		for n := range uint32(s.groups.count()) {
			number, _ := to.place(s.groups.key(n))
			to.merge(number, s, n)
		}
	}
}

// source is what a row is made of.
type source struct {
	key          []byte
	accumulators []agg.Accumulator
	entry        int  // its number among the revisions of the window, noEntry: it has none
	filled       bool // the group has no rows
}

// results emits a row for each group, r holds the revisions of the window and may
// be nil. What the rows of one call consist of lies in a few blocks of memory:
// they are rendered and let go together.
func (w *Window) results(window Span, timing Timing, r *revised, n int, out *Output, group func(i int) source) {
	fields := len(w.config.Aggregates)
	rows, values := out.results.take(n), out.values.take(n*fields)
	ends := make([][2]int, n) // of the keys and of the row keys
	var keys []byte
	w.payload = w.payload[:0]
	w.key = AppendSpan(w.key[:0], window)
	w.drawn = w.drawn[:0]
	for i := range rows {
		from := group(i)
		row := &rows[i]
		*row = Result{
			Time: window.last(), Timing: timing, Revision: 1, Spanned: true, Start: window.Start, End: window.End,
			Values: values[:fields:fields],
		}
		values = values[fields:]
		row.Err = w.values(from.accumulators, row.Values)
		if from.filled && w.config.Fill == FillZero {
			zeros(row.Values)
		}
		w.payload = w.identity.AppendRowKey(w.payload, from.key, w.key)
		if keys == nil {
			keys = make([]byte, 0, n*(len(from.key)+8))
		}
		keys = append(keys, from.key...)
		ends[i] = [2]int{len(keys), len(w.payload)}
		w.drawn = append(w.drawn, drawn{from.entry, from.filled})
	}
	text, from := string(w.payload), [2]int{}
	for i := range rows {
		rows[i].Key = keys[from[0]:ends[i][0]:ends[i][0]]
		rows[i].RowKey = text[from[1]:ends[i][1]]
		from = ends[i]
		if w.revised(&rows[i], window, r, w.drawn[i]) {
			out.Emit(&rows[i])
		}
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
