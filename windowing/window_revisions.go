package windowing

import (
	"bytes"
	"slices"
	"sort"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// revised holds the groups of one window whose revision is not a matter of
// course, and those that have to come out.
type revised struct {
	span     Span
	groups   keyTable
	rows     []revision // by group
	waiting  []uint32   // the groups that wait
	stirring []uint32   // the groups that stir
	changed  []uint32   // the dirty groups
	saved    bool       // some group of it may be in the store
}

// revision is what came out of one group of a window.
type revision struct {
	last  int64 // its last revision that came out, 0: none did
	out   bool  // that was a row, not one that took the row back
	waits bool  // it has to come out
	stirs bool  // it has to come out when the alarm rings, see window_early.go
	dirty bool  // it changed since the last Save
}

// revisionTable holds the windows with revisions.
type revisionTable struct {
	bySpan  map[Span]*revised
	ordered []*revised // all of them, by Span.Compare
	waiting []*revised // those with groups that wait
	dirty   []*revised // those with dirty groups, and some that were dropped since
	dropped []Span     // those whose records are to be deleted
	stirs   int        // groups that stir, over all windows
}

func newRevisionTable() revisionTable { return revisionTable{bySpan: map[Span]*revised{}} }

// open gives the table of a window, a new one where there is none.
func (t *revisionTable) open(span Span) *revised {
	r := t.bySpan[span]
	if r == nil {
		r = &revised{span: span}
		t.bySpan[span] = r
		at, _ := slices.BinarySearchFunc(t.ordered, span, compareRevised)
		t.ordered = slices.Insert(t.ordered, at, r)
	}
	return r
}

func compareRevised(r *revised, span Span) int { return r.span.Compare(span) }

// place gives the number of a group; a new one has no revision yet.
func (r *revised) place(key []byte) (number uint32, added bool) {
	number, added = r.groups.place(key)
	if added {
		r.rows = append(r.rows, revision{})
	}
	return number, added
}

// wait notes that a group has to come out.
func (t *revisionTable) wait(r *revised, number uint32) {
	if r.rows[number].waits {
		return
	}
	if len(r.waiting) == 0 {
		t.waiting = append(t.waiting, r)
	}
	r.rows[number].waits = true
	r.waiting = append(r.waiting, number)
	t.touch(r, number)
}

// touch notes that a group has to be saved.
func (t *revisionTable) touch(r *revised, number uint32) {
	if r.rows[number].dirty {
		return
	}
	r.rows[number].dirty = true
	if len(r.changed) == 0 {
		t.dirty = append(t.dirty, r)
	}
	r.changed = append(r.changed, number)
}

// drop forgets the windows up to one. None of them waits.
func (t *revisionTable) drop(gone Span) {
	n := 0
	for ; n < len(t.ordered) && t.ordered[n].span.Compare(gone) <= 0; n++ {
		r := t.ordered[n]
		delete(t.bySpan, r.span)
		r.changed = nil
		t.stirs -= len(r.stirring)
		if r.saved {
			t.dropped = append(t.dropped, r.span)
		}
	}
	t.ordered = slices.Delete(t.ordered, 0, n)
}

// revise notes which groups have to come out because of the rows of one Process:
// in all windows that are not gone, or, in append mode, in those that are final
// but allow lateness, and later those that are not final where there are early rows.
func (w *Window) revise(in Instant, gone Span) {
	if len(w.state.active) == 0 {
		return
	}
	for _, s := range w.state.active {
		open := gone // behind it are windows that are not final
		for {
			window, ok := w.config.Assigner.Next(s.span, open)
			if !ok || w.config.Mode == Append && window.Compare(w.emitted) > 0 {
				break
			}
			open = window
			w.reviseWindow(window, s)
		}
		if w.config.Early > 0 {
			w.stir(in, s, open)
		}
	}
	w.state.settle()
	if w.config.Mode == Complete {
		for _, r := range w.revisions.ordered {
			for number := range r.rows {
				w.revisions.wait(r, uint32(number))
			}
		}
	}
}

// reviseWindow lets the groups that changed in a slice wait in one of its windows.
func (w *Window) reviseWindow(window Span, s *timeSlice) {
	r := w.revisions.open(window)
	final := w.config.Mode == Append
	filled := w.config.Fill != NoFill && window.Compare(w.emitted) <= 0
	for _, number := range s.fresh.groups {
		key := s.groups.key(number)
		n, added := r.place(key)
		if added && final && w.existed(window, key) { // it came out when the window became final
			r.rows[n].last, r.rows[n].out = 1, true
		}
		w.revisions.wait(r, n)
		if filled {
			w.filling.note(string(key), window.End)
		}
	}
}

// existed says whether a group was in a window before the rows of this Process.
func (w *Window) existed(window Span, key []byte) bool {
	for _, s := range w.state.within(window) {
		if number, ok := s.groups.find(key); ok && (!s.fresh.set || int(number) < s.fresh.before) {
			return true
		}
	}
	return false
}

// emitRevisions emits what waits, in the order of windows and groups, and says
// how much of the limit is left.
func (w *Window) emitRevisions(in Instant, limit int, out *Output) int {
	t := &w.revisions
	if len(t.waiting) == 0 {
		return limit
	}
	slices.SortFunc(t.waiting, func(a, b *revised) int { return a.span.Compare(b.span) })
	for len(t.waiting) > 0 && limit > 0 {
		r := t.waiting[0]
		slices.SortFunc(r.waiting, func(a, b uint32) int { return bytes.Compare(r.groups.key(a), r.groups.key(b)) })
		n := min(limit, len(r.waiting))
		parts := w.pieces(r.span)
		w.results(r.span, w.timing(in, r.span), r, n, out, func(i int) source {
			number := r.waiting[i]
			r.rows[number].waits = false
			t.touch(r, number)
			key := r.groups.key(number)
			return source{key: key, accumulators: w.groupOf(parts, key), entry: int(number)}
		})
		limit -= n
		if r.waiting = slices.Delete(r.waiting, 0, n); len(r.waiting) == 0 {
			t.waiting = slices.Delete(t.waiting, 0, 1)
		}
	}
	return limit
}

// timing says when a revision comes out: before the window's end, with the step
// that reaches it, or later. In append mode the row at the end is no revision.
func (w *Window) timing(in Instant, window Span) Timing {
	switch {
	case w.config.Mode == Append && window.Compare(w.emitted) > 0:
		return Early
	case w.config.Mode == Append || window.End <= in.Late:
		return AfterEnd
	case window.End <= in.Close:
		return OnTime
	}
	return Early
}

// groupOf gives the accumulators of one group over the slices of a window, good
// until the next call.
func (w *Window) groupOf(parts []*timeSlice, key []byte) []agg.Accumulator {
	var found *timeSlice
	var at uint32
	for _, s := range parts {
		number, ok := s.groups.find(key)
		switch {
		case !ok:
		case found == nil:
			found, at = s, number
		default:
			if found != w.merged {
				w.merged.clear()
				w.merged.place(key)
				w.merged.merge(0, found, at)
				found, at = w.merged, 0
			}
			found.merge(at, s, number)
		}
	}
	if found == nil {
		return nil
	}
	return w.of(found, at)
}

// of gives the accumulators of a group, good until the next call.
func (w *Window) of(s *timeSlice, number uint32) []agg.Accumulator {
	w.group = s.of(number, w.group[:0])
	return w.group
}

// within gives the slices of a window.
func (t *sliceTable) within(window Span) []*timeSlice {
	from := sort.Search(len(t.ordered), func(i int) bool { return t.ordered[i].span.Start >= window.Start })
	to := from
	for to < len(t.ordered) && t.ordered[to].span.Start < window.End {
		to++
	}
	return t.ordered[from:to]
}
