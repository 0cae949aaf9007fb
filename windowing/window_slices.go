package windowing

import (
	"slices"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// slabLimit is how many groups are allocated at once at most.
const slabLimit = 128

// group is one group of one slice.
type group struct {
	key          string // canonical
	accumulators []agg.Accumulator
	dirty        bool // changed since the last Save
}

// timeSlice holds the groups of one stretch of event time.
type timeSlice struct {
	span   Span
	groups map[string]*group
	dirty  []*group // every dirty group, and some that were handed out since
	saved  bool     // some group of it may be in the store

	slab         []group // allocated ahead
	accumulators []agg.Accumulator
}

// sliceTable holds the slices that have rows. They do not overlap, so that the
// start names a slice and the order of starts is that of ends.
type sliceTable struct {
	byStart map[watermark.Time]*timeSlice
	ordered []*timeSlice // all of them, oldest first
	dirty   []*timeSlice // those with dirty groups, and some that were dropped since
	dropped []Span       // those whose records are to be deleted
	groups  int          // over all slices
}

func newSliceTable() sliceTable {
	return sliceTable{byStart: map[watermark.Time]*timeSlice{}}
}

// open gives the slice of a span, a new one where there is none. The caller puts
// a group into it.
func (t *sliceTable) open(span Span) *timeSlice {
	s := t.byStart[span.Start]
	if s == nil {
		s = &timeSlice{span: span, groups: map[string]*group{}}
		t.byStart[span.Start] = s
		at, _ := slices.BinarySearchFunc(t.ordered, span, func(s *timeSlice, span Span) int { return s.span.Compare(span) })
		t.ordered = slices.Insert(t.ordered, at, s)
	}
	return s
}

// newGroup adds a group with room for n accumulators.
func (t *sliceTable) newGroup(s *timeSlice, key string, n int) *group {
	if len(s.slab) == 0 {
		size := min(max(len(s.groups), 1), slabLimit)
		s.slab = make([]group, size)
		s.accumulators = make([]agg.Accumulator, size*n)
	}
	g := &s.slab[0]
	g.key, g.accumulators = key, s.accumulators[:n:n]
	s.slab, s.accumulators = s.slab[1:], s.accumulators[n:]
	s.groups[key] = g
	t.groups++
	return g
}

// touch notes that a group has to be saved.
func (t *sliceTable) touch(s *timeSlice, g *group) {
	g.dirty = true
	if len(s.dirty) == 0 {
		t.dirty = append(t.dirty, s)
	}
	s.dirty = append(s.dirty, g)
}

// drop forgets the n oldest slices. Their groups are handed out and no longer
// counted.
func (t *sliceTable) drop(n int) {
	for _, s := range t.ordered[:n] {
		delete(t.byStart, s.span.Start)
		s.dirty = nil
		if s.saved {
			t.dropped = append(t.dropped, s.span)
		}
	}
	t.ordered = slices.Delete(t.ordered, 0, n)
}
