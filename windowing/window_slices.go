package windowing

import (
	"slices"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// timeSlice holds the groups of one stretch of event time.
type timeSlice struct {
	span         Span
	groups       keyTable
	width        int // accumulators of a group
	accumulators []agg.Accumulator
	dirty        []bool   // by group: it changed since the last Save
	changed      []uint32 // the dirty groups, and some that were handed out since
	saved        bool     // some group of it may be in the store
}

// of gives the accumulators of a group.
func (s *timeSlice) of(number uint32) []agg.Accumulator {
	from := int(number) * s.width
	return s.accumulators[from : from+s.width : from+s.width]
}

// sliceTable holds the slices that have rows. They do not overlap, so that the
// start names a slice and the order of starts is that of ends.
type sliceTable struct {
	width   int // accumulators of a group
	byStart map[watermark.Time]*timeSlice
	ordered []*timeSlice // all of them, oldest first
	dirty   []*timeSlice // those with dirty groups, and some that were dropped since
	dropped []Span       // those whose records are to be deleted
	groups  int          // over all slices
}

func newSliceTable(width int) sliceTable {
	return sliceTable{width: width, byStart: map[watermark.Time]*timeSlice{}}
}

// open gives the slice of a span, a new one where there is none. The caller puts
// a group into it.
func (t *sliceTable) open(span Span) *timeSlice {
	s := t.byStart[span.Start]
	if s == nil {
		s = &timeSlice{span: span, width: t.width}
		t.byStart[span.Start] = s
		at, _ := slices.BinarySearchFunc(t.ordered, span, func(s *timeSlice, span Span) int { return s.span.Compare(span) })
		t.ordered = slices.Insert(t.ordered, at, s)
	}
	return s
}

// place gives the number of a group. A new one has room for its accumulators,
// which the caller fills in.
func (t *sliceTable) place(s *timeSlice, key []byte) (number uint32, added bool) {
	number, added = s.groups.place(key)
	if added {
		for range s.width {
			s.accumulators = append(s.accumulators, nil)
		}
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

// drop forgets the n oldest slices. Their groups are handed out and no longer
// counted.
func (t *sliceTable) drop(n int) {
	for _, s := range t.ordered[:n] {
		delete(t.byStart, s.span.Start)
		s.changed = nil
		if s.saved {
			t.dropped = append(t.dropped, s.span)
		}
	}
	t.ordered = slices.Delete(t.ordered, 0, n)
}
