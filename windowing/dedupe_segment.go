package windowing

import (
	"slices"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// segmentOf is the end of the segment of a key.
func (d *Dedupe) segmentOf(until, at watermark.Time) watermark.Time {
	kept := d.config.Delay
	if !d.config.WithEventTime {
		kept = max(kept, until.Sub(at))
	}
	if d.config.KeepLast {
		return segmentEnd(until, kept, orderedShare)
	}
	return segmentEnd(until, kept, segmentShare)
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
func (d *Dedupe) find() (*known, error) {
	if k := d.keys[string(d.key)]; k != nil && !d.over(k) {
		return k, nil
	}
	if !d.bounded() {
		return nil, nil
	}
	hash := hashOfKey(d.key)
	for i := len(d.segments) - 1; i >= 0 && d.segments[i].last > d.reached; i-- {
		s := d.segments[i]
		if s.away == 0 || !s.filter.has(hash) {
			continue
		}
		if k, err := d.fetch(s); k != nil || err != nil {
			return k, err
		}
	}
	return nil, nil
}

// fetch reads the key in d.key back from a segment, nil where it is not there.
func (d *Dedupe) fetch(s *segment[*known]) (*known, error) {
	d.rest = append(appendSegment(d.rest[:0], dedupeTable, s.last), d.key...)
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

// shed lets keys leave memory where it is full: those that go first, since a key is
// mostly repeated soon.
func (d *Dedupe) shed() {
	if !d.full() {
		return
	}
	excess := d.excess()
	if d.config.KeepLast {
		slices.SortFunc(d.due, inOrder) // which is a heap
		d.due = shedFrom(d.due, &excess, func(k *known) (freed int64, left bool) {
			if !d.horizon.before(k.stands()) {
				return 0, false
			}
			return d.leave(k)
		})
	}
	for _, s := range d.segments {
		s.list = shedFrom(s.list, &excess, d.leave)
	}
	d.stuck = excess > 0
}

// leave lets a key leave memory, if it is on disk, and says how many bytes that gives
// back.
func (d *Dedupe) leave(k *known) (freed int64, left bool) {
	if k.gone {
		return 0, true
	}
	if k.dirty || k.saved >= d.durable {
		return 0, false
	}
	d.forget(k)
	d.held += d.segments.leave(k.segment, hashOfKey([]byte(k.key)), k.listed, d.few())
	return k.bytes(), true
}
