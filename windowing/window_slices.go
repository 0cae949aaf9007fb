package windowing

import (
	"iter"
	"slices"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// timeSlice holds the groups of one stretch of event time.
type timeSlice struct {
	span    Span
	groups  keyTable
	columns []agg.Column // one for each aggregate
	dirty   []bool       // by group: it changed since the last Save
	changed []uint32     // the dirty groups, and some that were handed out since
	saved   bool         // some group of it may be in the store
	away    awayGroups
	fresh   fresh
}

func newTimeSlice(span Span, aggregates []Aggregate) *timeSlice {
	return &timeSlice{span: span, columns: newColumns(aggregates)}
}

func newColumns(aggregates []Aggregate) []agg.Column {
	columns := make([]agg.Column, len(aggregates))
	for i, a := range aggregates {
		columns[i] = a.Call.Function.NewColumn(a.Call)
	}
	return columns
}

// fresh is what the rows of one Process changed in a slice, for modes that revise.
type fresh struct {
	set    bool
	before int      // groups that were there before
	groups []uint32 // that changed
	seen   []bool   // by group: it is among them
}

// of appends the accumulators of a group. They are good until the next place.
func (s *timeSlice) of(number uint32, dst []agg.Accumulator) []agg.Accumulator {
	for _, c := range s.columns {
		dst = append(dst, c.At(number))
	}
	return dst
}

// set puts accumulators in the place of those of a group.
func (s *timeSlice) set(number uint32, accumulators []agg.Accumulator) {
	for i, c := range s.columns {
		c.Set(number, accumulators[i])
	}
}

// merge adds what a group of another slice has seen to one of this slice.
func (s *timeSlice) merge(number uint32, other *timeSlice, of uint32) {
	for i, c := range s.columns {
		c.At(number).Merge(other.columns[i].At(of))
	}
}

// mergeIn adds what accumulators have seen to a group.
func (s *timeSlice) mergeIn(number uint32, accumulators []agg.Accumulator) {
	for i, c := range s.columns {
		c.At(number).Merge(accumulators[i])
	}
}

// place gives the number of a group. A new one has empty accumulators.
func (s *timeSlice) place(key []byte) (number uint32, added bool) {
	return s.placeHashed(key, hashKey(key))
}

// placeHashed is place for a key whose hash is known.
func (s *timeSlice) placeHashed(key []byte, hash uint32) (number uint32, added bool) {
	number, added = s.groups.placeHashed(key, hash)
	if added {
		for _, c := range s.columns {
			c.Extend()
		}
	}
	return number, added
}

// clear empties a slice that is in no table. Its memory is used again.
func (s *timeSlice) clear() {
	s.groups.clear()
	for _, c := range s.columns {
		c.Clear()
	}
	s.dirty, s.changed, s.saved = s.dirty[:0], s.changed[:0], false
	s.away, s.fresh = awayGroups{}, fresh{seen: s.fresh.seen[:0]}
}

// unsaved gives the dirty groups. Where they are many it goes through all groups
// in their order, which is that of their memory.
func (s *timeSlice) unsaved() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if len(s.changed) > len(s.dirty)/8 {
			for number, dirty := range s.dirty {
				if dirty && !yield(uint32(number)) {
					return
				}
			}
			return
		}
		for _, number := range s.changed {
			if s.dirty[number] && !yield(number) {
				return
			}
		}
	}
}

// sliceTable holds the slices that have rows. They do not overlap, so that the
// start names a slice and the order of starts is that of ends.
type sliceTable struct {
	aggregates []Aggregate
	byStart    map[watermark.Time]*timeSlice
	ordered    []*timeSlice // all of them, oldest first
	dirty      []*timeSlice // those with dirty groups, and some that were dropped since
	dropped    []Span       // those whose records are to be deleted
	groups     int          // in memory, over all slices
	away       int          // on disk only, over all slices
	revises    bool         // active is wanted
	active     []*timeSlice // those that the rows of one Process changed
	spare      *timeSlice   // empty, with the memory of one that was dropped; nil: none
}

func newSliceTable(aggregates []Aggregate, revises bool) sliceTable {
	return sliceTable{aggregates: aggregates, byStart: map[watermark.Time]*timeSlice{}, revises: revises}
}

// open gives the slice of a span, a new one where there is none. The caller puts
// a group into it.
func (t *sliceTable) open(span Span) *timeSlice {
	s := t.byStart[span.Start]
	if s == nil {
		s = t.take(span)
		t.byStart[span.Start] = s
		at, _ := slices.BinarySearchFunc(t.ordered, span, func(s *timeSlice, span Span) int { return s.span.Compare(span) })
		t.ordered = slices.Insert(t.ordered, at, s)
	}
	return s
}

// take gives an empty slice. Slices are mostly of about one size: the memory of the
// last one that was dropped neither grows again nor has to be collected.
func (t *sliceTable) take(span Span) *timeSlice {
	s := t.spare
	if s == nil {
		return newTimeSlice(span, t.aggregates)
	}
	t.spare, s.span = nil, span
	return s
}

// place gives the number of a group. A new one has empty accumulators.
func (t *sliceTable) place(s *timeSlice, key []byte, hash uint32) (number uint32, added bool) {
	number, added = s.placeHashed(key, hash)
	if added {
		s.dirty = append(s.dirty, false)
		t.groups++
	}
	return number, added
}

// touch notes that a group has to be saved.
func (t *sliceTable) touch(s *timeSlice, number uint32) {
	if s.dirty[number] {
		return
	}
	s.dirty[number] = true
	if len(s.changed) == 0 {
		t.dirty = append(t.dirty, s)
	}
	s.changed = append(s.changed, number)
}

// freshen notes that the rows of this Process changed a group, or added it.
func (t *sliceTable) freshen(s *timeSlice, number uint32, added bool) {
	f := &s.fresh
	if !f.set {
		f.set, f.before = true, s.groups.count()
		if added {
			f.before--
		}
		t.active = append(t.active, s)
	}
	for len(f.seen) < s.groups.count() {
		f.seen = append(f.seen, false)
	}
	if !f.seen[number] {
		f.seen[number] = true
		f.groups = append(f.groups, number)
	}
}

// settle ends a Process: nothing is fresh any more.
func (t *sliceTable) settle() {
	for _, s := range t.active {
		for _, number := range s.fresh.groups {
			s.fresh.seen[number] = false
		}
		s.fresh.set, s.fresh.groups = false, s.fresh.groups[:0]
	}
	clear(t.active)
	t.active = t.active[:0]
}

// drop forgets the n oldest slices.
func (t *sliceTable) drop(n int) {
	for _, s := range t.ordered[:n] {
		delete(t.byStart, s.span.Start)
		t.groups -= s.groups.count()
		t.away -= s.away.count
		if s.saved {
			t.dropped = append(t.dropped, s.span)
		}
		t.spare = nil
		if !s.groups.roomy() { // what one large window took is let go
			t.spare = s
		}
		s.clear()
	}
	t.ordered = slices.Delete(t.ordered, 0, n)
}
