package windowing

import (
	"cmp"
	"math"
	"slices"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// nextDue gives the key that goes next, the first of due, nil where none is due.
func (d *Dedupe) nextDue() (*known, error) {
	for {
		for len(d.due) > 0 && d.due[0].gone {
			d.due.pop()
		}
		due := len(d.due) > 0 && d.due[0].until <= d.reached
		if due && !d.horizon.before(d.due[0].goes()) || !d.awayDue() {
			if !due {
				return nil, nil
			}
			return d.due[0], nil
		}
		if err := d.approach(); err != nil {
			return nil, err
		}
	}
}

// awayDue says that a key beyond the horizon may be due and away.
func (d *Dedupe) awayDue() bool {
	return d.horizon.until <= d.reached &&
		slices.ContainsFunc(d.segments, func(s *dedupeSegment) bool { return s.away > 0 && s.first <= d.reached })
}

// nearShare is which part of the memory keys may take that go next.
const nearShare = 4

// approach reads back the keys that go next, as many as a part of memory takes, and
// moves the horizon behind them. It reads a segment at least, as a whole.
func (d *Dedupe) approach() error {
	away := slices.DeleteFunc(slices.Clone(d.segments), func(s *dedupeSegment) bool { return s.away == 0 })
	slices.SortStableFunc(away, func(a, b *dedupeSegment) int { return cmp.Compare(a.first, b.first) })
	next := nearest{room: d.bound / nearShare, horizon: instant{until: watermark.EndOfTime, arrival: math.MaxInt64}}
	for _, s := range away {
		if next.cut && s.first > next.horizon.until {
			break
		}
		if !next.cut && len(next.keys) > 0 {
			next.horizon = instant{until: s.first, arrival: math.MinInt64}
			break
		}
		if err := d.readAway(s, &next); err != nil {
			return err
		}
	}
	for _, k := range next.keys {
		k.segment.away--
		d.remember(k)
	}
	d.horizon = next.horizon
	return nil
}

// readAway puts the keys of a segment that are away among the nearest ones.
func (d *Dedupe) readAway(s *dedupeSegment, next *nearest) error {
	from := kv.AppendTime([]byte{dedupeTable}, s.last)
	err := d.disk.Scan(from, kv.PrefixEnd(from), func(key, value []byte) error {
		k, err := d.decode(key[len(from):], value)
		if err != nil {
			return recordError(key, err)
		}
		if now := d.keys[k.key]; d.over(k) || next.horizon.before(k.goes()) || now != nil && now.segment == s {
			return nil
		}
		k.segment, k.listed = s, true
		next.add(k)
		return nil
	})
	if err == nil {
		next.trim()
	}
	return err
}

// nearest collects the keys that go first, as far as there is room.
type nearest struct {
	room    int64 // bytes
	keys    []*known
	size    int64
	horizon instant // what goes later is left out
	cut     bool    // something was
}

func (n *nearest) add(k *known) {
	n.keys = append(n.keys, k)
	if n.size += k.bytes(); n.size > 2*n.room+entryBytes {
		n.trim()
	}
}

// trim leaves out what there is no room for, but one.
func (n *nearest) trim() {
	if n.size <= n.room {
		return
	}
	slices.SortFunc(n.keys, compareKnown)
	keep := 0
	for n.size = 0; keep < len(n.keys) && (keep == 0 || n.size < n.room); keep++ {
		n.size += n.keys[keep].bytes()
	}
	if keep < len(n.keys) {
		clear(n.keys[keep:])
		n.keys = n.keys[:keep]
		n.horizon, n.cut = n.keys[keep-1].goes(), true
	}
}

func compareKnown(a, b *known) int {
	if c := cmp.Compare(a.until, b.until); c != 0 {
		return c
	}
	return cmp.Compare(a.arrival, b.arrival)
}
