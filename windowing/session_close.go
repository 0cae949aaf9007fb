package windowing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// Advance emits in append mode the sessions that end before in.Close, or before a
// close that was reached earlier; in update mode those that changed, after which
// the sessions that end before go silently. What has come out and what is gone
// is no longer state, so that a restart goes on with the rest.
func (s *Session) Advance(in Instant, limit int, out *Output) (done bool) {
	if in.Close > s.reached {
		s.reached, s.progress = in.Close, true
	}
	limit -= s.show(limit, out)
	if len(s.unshown) > 0 {
		return false
	}
	for limit > 0 {
		it := s.closings.next(s.isDue)
		if it == nil {
			break
		}
		s.closings.remove(it)
		it.group.take(it)
		s.due = append(s.due, it)
		limit--
	}
	if s.config.Mode == Append {
		s.finals(s.due, out)
	}
	for _, it := range s.due {
		s.leave(it)
	}
	clear(s.due)
	s.due = s.due[:0]
	return s.closings.next(s.isDue) == nil
}

// isDue says whether a session with that end is closed. The end of time closes all.
func (s *Session) isDue(end watermark.Time) bool {
	return end < s.reached || s.reached == watermark.EndOfTime
}

// finals emits a row for each session. What the rows of one call consist of lies
// in a few blocks of memory: they are rendered and let go together.
func (s *Session) finals(list []*session, out *Output) {
	rows := make([]Result, len(list))
	values := make([]agg.Value, len(list)*len(s.config.Aggregates))
	for i, it := range list {
		rows[i] = s.result(it, it.bounds, values[:len(it.accumulators):len(it.accumulators)])
		values = values[len(it.accumulators):]
		if s.keeps(&rows[i]) {
			out.Emit(&rows[i])
		}
	}
}

// keeps asks the condition on results.
func (s *Session) keeps(res *Result) bool {
	if s.config.Having == nil {
		return true
	}
	keep, err := s.config.Having(res)
	if err != nil {
		res.Err = errors.Join(res.Err, err)
	}
	return keep || err != nil
}

// result is the row of a session as it is now.
func (s *Session) result(it *session, bounds Span, values []agg.Value) Result {
	row := s.rowOf(it, bounds)
	row.Values = values
	row.Err = s.values(it.accumulators, values)
	return row
}

// rowOf is a row for the group of a session, without values.
func (s *Session) rowOf(it *session, bounds Span) Result {
	row := Result{Time: bounds.last(), Timing: OnTime, Revision: 1, Spanned: true, Start: bounds.Start, End: bounds.End,
		Key: []byte(it.group.key)}
	s.key = AppendSpan(s.key[:0], bounds)
	s.payload = s.identity.AppendRowKey(s.payload[:0], row.Key, s.key)
	row.RowKey = string(s.payload)
	return row
}

// values reads the aggregates of a session. Those that fail are null, the error
// names them.
func (s *Session) values(accumulators []agg.Accumulator, values []agg.Value) error {
	var errs []error
	for i, acc := range accumulators {
		v, err := acc.Result()
		if err != nil {
			v = agg.Null()
			errs = append(errs, fmt.Errorf("aggregate %q: %w", s.config.Aggregates[i].Name, err))
		}
		values[i] = v
	}
	return errors.Join(errs...)
}

// show hands out at most about limit rows for sessions that changed and says how
// many. Rows that no longer hold are taken back before the new one.
func (s *Session) show(limit int, out *Output) (n int) {
	s.order()
	at := 0
	for ; at < len(s.unshown) && n < limit; at++ {
		it := s.unshown[at]
		if it.group == nil {
			continue
		}
		n += s.takeBack(it, limit-n, out)
		if n >= limit {
			break
		}
		out.Emit(s.revised(it))
		it.pending = false
		n++
	}
	s.unshown = slices.Delete(s.unshown, 0, at)
	return n
}

// order sorts what is to come out: by end, start, group.
func (s *Session) order() {
	if s.ordered {
		return
	}
	s.unshown = slices.DeleteFunc(s.unshown, func(it *session) bool { return it.group == nil })
	slices.SortFunc(s.unshown, func(a, b *session) int {
		if c := a.bounds.Compare(b.bounds); c != 0 {
			return c
		}
		return cmp.Compare(a.group.key, b.group.key)
	})
	for _, it := range s.unshown {
		slices.SortFunc(it.shown, func(a, b shownRow) int { return a.bounds.Compare(b.bounds) })
	}
	s.ordered = true
}

// takeBack emits at most limit rows that take back what was shown under other
// bounds, and says how many.
func (s *Session) takeBack(it *session, limit int, out *Output) (n int) {
	for ; n < limit; n++ {
		at := it.outdated()
		if at < 0 {
			break
		}
		row := s.rowOf(it, it.shown[at].bounds)
		row.Timing, row.Revision = Deleted, it.shown[at].revision+1
		out.Emit(&row)
		it.shown = slices.Delete(it.shown, at, at+1)
		s.dirtied(it)
	}
	return n
}

// outdated is the index of the first row out there under other bounds, or -1.
func (it *session) outdated() int {
	return slices.IndexFunc(it.shown, func(r shownRow) bool { return r.bounds != it.bounds })
}

// revised is the row of a session as it is now, which replaces what is out.
func (s *Session) revised(it *session) *Result {
	row := s.result(it, it.bounds, make([]agg.Value, len(it.accumulators)))
	if len(it.shown) > 0 {
		row.Revision = it.shown[0].revision + 1
	}
	if !s.isDue(it.bounds.End) {
		row.Timing = Early
	}
	it.shown = append(it.shown[:0], shownRow{bounds: it.bounds, revision: row.Revision})
	s.dirtied(it)
	return &row
}

// dirtied notes that a session has to be saved again.
func (s *Session) dirtied(it *session) {
	if !it.dirty {
		it.dirty = true
		s.changed = append(s.changed, it)
	}
}
