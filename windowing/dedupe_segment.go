package windowing

import (
	"cmp"
	"slices"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// dedupeSegment holds the keys that go in a stretch of event time, up to last. Its
// records have last in their keys, and are deleted as a whole.
type dedupeSegment struct {
	first  watermark.Time // no key goes before it
	last   watermark.Time
	list   []*known // in memory, without KeepLast; some are gone
	filter filter   // of what is away, or was
	away   int      // keys on disk only, some of which may be over
	stored bool     // there are records
}

const (
	// segmentShare is how many segments the time of a key is cut into at most. More
	// of them take longer to look through, fewer keep what is over for longer.
	segmentShare = 8
	// leastSegment is the shortest one, in nanoseconds; a power of two.
	leastSegment watermark.Time = 1 << 20
	// timedSegment is that of keys which have their event time in them: only one is
	// looked through.
	timedSegment watermark.Time = 1 << 33
)

// segmentEnd is the end of the segment of a key. Its length is a power of two: where
// `within` changes a little the segments stay the same, and others may lie across
// each other.
func (d *Dedupe) segmentEnd(until, at watermark.Time) watermark.Time {
	width := leastSegment
	if d.config.WithEventTime {
		width = timedSegment
	} else {
		for share := (until - at) / segmentShare; width < share && width < 1<<62; {
			width <<= 1
		}
	}
	if from := until &^ (width - 1); from <= watermark.Max-width {
		return from + (width - 1)
	}
	return watermark.EndOfTime
}

// segment gives the segment that ends at last, made where there is none.
func (d *Dedupe) segment(last watermark.Time) *dedupeSegment {
	if n := len(d.segments); n > 0 && d.segments[n-1].last == last {
		return d.segments[n-1]
	}
	at, found := slices.BinarySearchFunc(d.segments, last, func(s *dedupeSegment, last watermark.Time) int {
		return cmp.Compare(s.last, last)
	})
	if !found {
		d.segments = slices.Insert(d.segments, at, &dedupeSegment{first: watermark.EndOfTime, last: last})
	}
	return d.segments[at]
}

// remember puts a key into memory.
func (d *Dedupe) remember(k *known) {
	if old := d.keys[k.key]; old != nil { // it is over
		old.gone = true
		d.held -= old.bytes()
	}
	d.keys[k.key] = k
	d.held += k.bytes()
	k.segment.first = min(k.segment.first, k.until)
	if k.last != nil {
		d.due.push(k)
	} else {
		k.segment.list = append(k.segment.list, k)
	}
}

// forget takes a key that is over out of memory.
func (d *Dedupe) forget(k *known) {
	if !k.gone {
		k.gone = true
		delete(d.keys, k.key)
		d.held -= k.bytes()
	}
}

// bytes is about what a key takes in memory.
func (k *known) bytes() int64 {
	n := entryBytes + int64(len(k.key))
	if k.last != nil {
		n += int64(len(k.last.payload)) + candidateBytes
	}
	return n
}

const candidateBytes = 56

// find gives the key in d.key, nil where it is not remembered. It is brought back to
// memory where it is away.
func (d *Dedupe) find(last watermark.Time) (*known, error) {
	if k := d.keys[string(d.key)]; k != nil && !d.over(k) {
		return k, nil
	}
	if !d.bounded() {
		return nil, nil
	}
	hash := hashOfKey(d.key)
	for i := len(d.segments) - 1; i >= 0 && d.segments[i].last > d.reached; i-- {
		s := d.segments[i]
		if s.away == 0 || d.config.WithEventTime && s.last != last || !s.filter.has(hash) {
			continue
		}
		if k, err := d.fetch(s); k != nil || err != nil {
			return k, err
		}
	}
	return nil, nil
}

// fetch reads the key in d.key back from a segment, nil where it is not there.
func (d *Dedupe) fetch(s *dedupeSegment) (*known, error) {
	d.rest = append(s.appendKey(d.rest[:0]), d.key...)
	value, err := d.disk.Get(d.rest)
	if value == nil && err == nil {
		return nil, nil
	}
	var k *known
	if err == nil {
		k, err = d.decode(d.key, value)
	}
	if err != nil {
		return nil, recordError(d.rest, err)
	}
	if d.over(k) {
		return nil, nil
	}
	k.segment, k.listed = s, true
	s.away--
	d.remember(k)
	return k, nil
}

// dropSegments forgets the segments that are over, with about budget keys, and says
// whether none is left. Records go with the next Save.
func (d *Dedupe) dropSegments(budget int) (done bool) {
	for len(d.segments) > 0 && d.segments[0].last <= d.reached {
		s := d.segments[0]
		n := min(len(s.list), max(budget, 1))
		for i, k := range s.list[:n] {
			d.forget(k)
			s.list[i] = nil
		}
		budget -= n
		if s.list = s.list[n:]; len(s.list) > 0 {
			return false
		}
		if s.stored {
			d.doomed = append(d.doomed, s.last)
		}
		d.held -= s.filter.bytes()
		d.segments = slices.Delete(d.segments, 0, 1)
	}
	return true
}

// Committed implements Bounded.
func (d *Dedupe) Committed() {
	d.committed()
	d.shed()
}

// shed lets keys leave memory where it is full: without KeepLast those that go first,
// since a key is mostly repeated soon, else those that go last.
func (d *Dedupe) shed() {
	if !d.full() {
		return
	}
	excess := d.excess()
	if d.config.KeepLast {
		slices.SortFunc(d.due, compareKnown) // which is a heap
		for i := len(d.due) - 1; i >= 0 && excess > 0; i-- {
			if k := d.due[i]; d.horizon.before(k.goes()) && d.leave(k) {
				excess -= k.bytes()
				d.due[i] = nil
			}
		}
		d.due = compact(d.due, len(d.due))
	}
	for _, s := range d.segments {
		n := 0
		for ; n < len(s.list) && excess > 0; n++ {
			if k := s.list[n]; d.leave(k) {
				excess -= k.bytes()
				s.list[n] = nil
			}
		}
		s.list = compact(s.list, n)
	}
	d.stuck = excess > 0
}

// compact closes the gaps among the first n of a list, and gives its memory back
// where little is left.
func compact(list []*known, n int) []*known {
	left := len(slices.DeleteFunc(list[:n:n], func(k *known) bool { return k == nil }))
	list = slices.Delete(list, left, n)
	if len(list) < cap(list)/4 {
		list = slices.Clone(list)
	}
	return list
}

// leave lets a key leave memory, if it is on disk.
func (d *Dedupe) leave(k *known) bool {
	if k.gone {
		return true
	}
	if k.dirty || k.saved >= d.durable {
		return false
	}
	d.forget(k)
	s := k.segment
	s.away++
	if k.listed {
		return true
	}
	d.held -= s.filter.bytes()
	if s.filter.empty() { // most likely it gets as large as its neighbours
		s.filter.reserve(d.largest())
	}
	s.filter.add(hashOfKey([]byte(k.key)))
	d.held += s.filter.bytes()
	return true
}

// largest is the number of keys that are away of the segment with most of them.
func (d *Dedupe) largest() (n int) {
	for _, s := range d.segments {
		n = max(n, s.away)
	}
	return n
}

// appendKey appends what the keys of the records of a segment begin with.
func (s *dedupeSegment) appendKey(b []byte) []byte {
	return kv.AppendTime(append(b, dedupeTable), s.last)
}
