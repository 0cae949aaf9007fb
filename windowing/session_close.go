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
// the sessions that end before go silently; with early rows those that changed and
// are open, when the alarm rings, then those that end before. What has come out and
// what is gone is no longer state, so that a restart goes on with the rest.
func (s *Session) Advance(in Instant, limit int, out *Output) (done bool) {
	if in.Close > s.reached {
		s.reached, s.progress = in.Close, true
	}
	if s.shows(in) {
		limit -= s.show(limit, out)
		if len(s.unshown) > 0 {
			return false
		}
	}
	for limit > 0 {
		it := s.closings.next(s.isDue)
		if it == nil {
			break
		}
		s.closings.remove(it)
		it.group.take(it)
		s.due = append(s.due, it)
		limit -= max(1, len(it.shown)) // all but one are taken back
	}
	if s.config.Mode == Append {
		s.finals(s.due, out)
	}
	for _, it := range s.due {
		s.leave(it)
	}
	clear(s.due)
	s.due = s.due[:0]
	if s.pending == 0 {
		s.rest()
	}
	return s.closings.next(s.isDue) == nil
}

// rest silences an alarm that nothing waits for.
func (s *Session) rest() {
	clear(s.unshown)
	s.unshown = s.unshown[:0]
	if s.alarm.set {
		s.alarm.silence()
	}
}

// shows says whether what changed comes out now. Once the alarm has rung it does
// until nothing is left, over a restart too.
func (s *Session) shows(in Instant) bool {
	switch {
	case s.config.Early == 0 || s.pending == 0:
		return s.config.Mode == Update
	case s.alarm.set && s.alarm.due(in.Wall, s.config.Early):
		s.alarm.silence()
	}
	return !s.alarm.set
}

// Alarm is when early rows come out by the wall clock.
func (s *Session) Alarm() (wall watermark.Time, ok bool) {
	return s.alarm.at, s.alarm.set && s.config.Early > 0
}

// isDue says whether a session with that end is closed. The end of time closes all.
func (s *Session) isDue(end watermark.Time) bool {
	return end < s.reached || s.reached == watermark.EndOfTime
}

// finals emits a row for each session. What the rows of one call consist of lies
// in a few blocks of memory: they are rendered and let go together.
func (s *Session) finals(list []*session, out *Output) {
	rows, values := out.results.take(len(list)), out.values.take(len(list)*len(s.config.Aggregates))
	for i, it := range list {
		s.takeBack(it, len(it.shown), out)
		rows[i] = s.result(it, it.bounds, values[:len(it.accumulators):len(it.accumulators)])
		values = values[len(it.accumulators):]
		if s.revise(it, &rows[i]) {
			out.Emit(&rows[i])
		}
	}
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
		if it.group == nil || s.config.Mode == Append && s.isDue(it.bounds.End) {
			continue // its row at the close follows
		}
		n += s.takeBack(it, limit-n, out)
		if n >= limit {
			break
		}
		s.showOne(it, out)
		it.pending = false
		s.pending--
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
	for n < limit {
		at := it.outdated()
		if at < 0 {
			break
		}
		if old := it.shown[at]; !old.gone {
			row := s.rowOf(it, old.bounds)
			row.Timing, row.Revision = Deleted, old.revision+1
			out.Emit(&row)
			n++
		}
		it.shown = slices.Delete(it.shown, at, at+1)
		s.dirtied(it)
	}
	return n
}

// outdated is the index of the first row out there under other bounds, or -1.
func (it *session) outdated() int {
	return slices.IndexFunc(it.shown, func(r shownRow) bool { return r.bounds != it.bounds })
}

// showOne emits the row of a session as it is now, which replaces what is out, or
// takes that back.
func (s *Session) showOne(it *session, out *Output) {
	row := s.result(it, it.bounds, make([]agg.Value, len(it.accumulators)))
	if !s.isDue(it.bounds.End) {
		row.Timing = Early
	}
	if s.revise(it, &row) {
		it.shown = append(it.shown[:0], shownRow{bounds: it.bounds, revision: row.Revision, gone: row.Timing == Deleted})
		out.Emit(&row)
	}
	s.dirtied(it)
}

// revise gives a row its revision and says whether it comes out, as Window.revised
// does. What was shown under other bounds has been taken back.
func (s *Session) revise(it *session, row *Result) bool {
	keep, last := s.config.Having.keeps(row), shownRow{gone: true}
	if len(it.shown) > 0 {
		last = it.shown[0]
	}
	if !keep && last.gone {
		return false
	}
	row.Revision = last.revision + 1
	if !keep {
		row.Timing, row.Values, row.Err = Deleted, nil, nil
	}
	return true
}

// dirtied notes that a session has to be saved again.
func (s *Session) dirtied(it *session) {
	if !it.dirty {
		it.dirty = true
		s.changed = append(s.changed, it)
	}
}
