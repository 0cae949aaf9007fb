package windowing

import (
	"cmp"
	"slices"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// segment holds the entries of an operator that belong to a stretch of event time,
// up to last. Their records have last in their keys, and go as one range.
type segment[T shelved] struct {
	first  watermark.Time // no entry is before it
	last   watermark.Time
	list   []T    // in memory, where nothing else keeps them in an order; some are gone
	filter filter // of what is away, or was
	away   int    // entries on disk only, some of which may be over
	stored bool   // there are records
}

// shelved is an entry of a segment.
type shelved interface {
	comparable
	// bytes is about what the entry takes in memory.
	bytes() int64
	// stands is its place in the order of its operator.
	stands() instant
}

// instant is a place in the order of event time and arrival.
type instant struct {
	at      watermark.Time
	arrival int64
}

var beginning = instant{at: watermark.Unset}

func (i instant) before(other instant) bool { return i.compare(other) < 0 }

func (i instant) compare(other instant) int {
	if c := cmp.Compare(i.at, other.at); c != 0 {
		return c
	}
	return cmp.Compare(i.arrival, other.arrival)
}

// inOrder compares two entries.
func inOrder[T shelved](a, b T) int { return a.stands().compare(b.stands()) }

// How many segments the time for which entries are kept is cut into at most. More of
// them take longer to look through, fewer keep what is over for longer; where entries
// come out in their order, a segment is read more often the more it holds.
const (
	segmentShare = 8
	orderedShare = 32
)

// segmentEnd is the end of the segment that at belongs to, where entries are kept
// for a time that is cut into share segments at most. The length is a power of two: where that time changes a little the
// segments stay the same. Others may lie across each other.
func segmentEnd(at watermark.Time, kept time.Duration, share watermark.Time) watermark.Time {
	width := watermark.Time(1)
	for most := watermark.Time(kept) / share; width < most && width < 1<<62; {
		width <<= 1
	}
	if from := at &^ (width - 1); from <= watermark.Max-width {
		return from + (width - 1)
	}
	return watermark.EndOfTime
}

// segments are in the order of their ends.
type segments[T shelved] []*segment[T]

// at gives the segment that ends at last, made where there is none.
func (l *segments[T]) at(last watermark.Time) *segment[T] {
	list := *l
	if n := len(list); n > 0 && list[n-1].last == last {
		return list[n-1]
	}
	at, found := slices.BinarySearchFunc(list, last, func(s *segment[T], last watermark.Time) int {
		return cmp.Compare(s.last, last)
	})
	if !found {
		*l = slices.Insert(list, at, &segment[T]{first: watermark.EndOfTime, last: last})
	}
	return (*l)[at]
}

// ending gives the index of the first segment that ends at a time or later.
func (l segments[T]) ending(at watermark.Time) int {
	n, _ := slices.BinarySearchFunc(l, at, func(s *segment[T], at watermark.Time) int {
		return cmp.Compare(s.last, at)
	})
	return n
}

// fewToCount is up to how many entries are looked at one by one to count them: a
// count of more is about right without it.
const fewToCount = 10_000

// away is the number of entries on disk only.
func (l segments[T]) away() (n int) {
	for _, s := range l {
		n += s.away
	}
	return n
}

// beyond gives the segments with entries away behind a horizon, in the order in which
// those begin.
func (l segments[T]) beyond(horizon instant) segments[T] {
	list := slices.DeleteFunc(slices.Clone(l), func(s *segment[T]) bool { return !s.beyond(horizon) })
	slices.SortStableFunc(list, func(a, b *segment[T]) int { return cmp.Compare(a.first, b.first) })
	return list
}

func (s *segment[T]) beyond(horizon instant) bool {
	return s.away > 0 && horizon.before(instant{s.last, lastNumber})
}

// leave takes up an entry that leaves memory, unless its key is in the filter
// already, and gives the bytes that the filter has grown by. A filter is made for few
// entries at least.
func (l segments[T]) leave(s *segment[T], hash uint64, listed bool, few int) (grown int64) {
	s.away++
	if listed {
		return 0
	}
	before := s.filter.bytes()
	if s.filter.empty() { // most likely it gets as large as its neighbours
		most := few
		for _, other := range l {
			most = max(most, other.away)
		}
		s.filter.reserve(most)
	}
	s.filter.add(hash)
	return s.filter.bytes() - before
}

// enlist notes entries that are away from the beginning, by the hashes of their keys.
func (s *segment[T]) enlist(hashes []uint64) {
	if len(hashes) == 0 {
		return
	}
	s.filter.reserve(len(hashes))
	for _, h := range hashes {
		s.filter.add(h)
	}
}

// compact closes the gaps among the first n of a list, and gives its memory back
// where little is left.
func compact[T comparable](list []T, n int) []T {
	var none T
	left := len(slices.DeleteFunc(list[:n:n], func(it T) bool { return it == none }))
	list = slices.Delete(list, left, n)
	if len(list) < cap(list)/4 {
		list = slices.Clone(list)
	}
	return list
}

// shedFrom lets entries leave memory, from the first one on, until there is no excess,
// and gives what is left of the list. leave says whether an entry is through with the
// list, and how many bytes that gives back.
func shedFrom[T shelved](list []T, excess *int64, leave func(it T) (freed int64, left bool)) []T {
	var none T
	n := 0
	for ; n < len(list) && *excess > 0; n++ {
		if freed, left := leave(list[n]); left {
			*excess -= freed
			list[n] = none
		}
	}
	return compact(list, n)
}

// nearShare is which part of the memory entries may take that are read back because
// they come next.
const nearShare = 4

// nearest collects the entries that come first, as far as there is room.
type nearest[T shelved] struct {
	room    int64 // bytes
	list    []T
	size    int64
	horizon instant // what comes later is left out
	cut     bool    // something was
}

func newNearest[T shelved](bound int64) *nearest[T] {
	return &nearest[T]{room: bound / nearShare, horizon: instant{at: watermark.EndOfTime, arrival: lastNumber}}
}

// beyond says that an entry is left out.
func (n *nearest[T]) beyond(it T) bool { return n.horizon.before(it.stands()) }

func (n *nearest[T]) add(it T) {
	n.list = append(n.list, it)
	if n.size += it.bytes(); n.size > 2*n.room+entryBytes {
		n.trim()
	}
}

// trim leaves out what there is no room for, but one.
func (n *nearest[T]) trim() {
	if n.size <= n.room {
		return
	}
	slices.SortFunc(n.list, inOrder)
	keep := 0
	for n.size = 0; keep < len(n.list) && (keep == 0 || n.size < n.room); keep++ {
		n.size += n.list[keep].bytes()
	}
	if keep < len(n.list) {
		clear(n.list[keep:])
		n.list = n.list[:keep]
		n.horizon, n.cut = n.list[keep-1].stands(), true
	}
}

// approach reads segments, which lie in the order in which what is away there begins,
// until the entries that come first are found or one segment was read as a whole, with
// those across it. The horizon is behind them then.
func (n *nearest[T]) approach(away segments[T], read func(s *segment[T]) error) error {
	end := watermark.Unset
	for i, s := range away {
		if n.cut && s.first > n.horizon.at || !n.cut && i > 0 && s.first > end {
			break
		}
		if err := read(s); err != nil {
			return err
		}
		n.trim()
		end = max(end, s.last)
	}
	if !n.cut && len(away) > 0 {
		n.horizon = instant{at: end, arrival: lastNumber}
	}
	return nil
}
