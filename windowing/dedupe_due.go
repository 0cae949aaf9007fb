package windowing

import (
	"slices"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// nextDue gives the key that goes next, the first of due, nil where none is due.
func (d *Dedupe) nextDue() (*known, error) {
	for {
		for len(d.due) > 0 && d.due[0].gone {
			d.due.pop()
		}
		due := len(d.due) > 0 && d.due[0].until <= d.reached
		if due && !d.horizon.before(d.due[0].stands()) || !d.awayDue() {
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
	return d.horizon.at <= d.reached && slices.ContainsFunc(d.segments, func(s *segment[*known]) bool {
		return s.first <= d.reached && s.beyond(d.horizon)
	})
}

// approach reads back the keys that go next, as many as a part of memory takes, and
// moves the horizon behind them.
func (d *Dedupe) approach() error {
	next := newNearest[*known](d.bound)
	err := next.approach(d.segments.beyond(d.horizon), func(s *segment[*known]) error { return d.readAway(s, next) })
	if err != nil {
		return err
	}
	for _, k := range next.list {
		k.segment.away--
		d.remember(k)
	}
	d.horizon = next.horizon
	return nil
}

// readAway puts the keys of a segment that are away among the nearest ones.
func (d *Dedupe) readAway(s *segment[*known], next *nearest[*known]) error {
	from := appendSegment(nil, dedupeTable, s.last)
	return d.disk.Scan(from, kv.PrefixEnd(from), func(key, value []byte) error {
		k, err := d.decode(key[len(from):], value)
		if err != nil {
			return recordError(key, err)
		}
		if now := d.keys[k.key]; d.over(k) || next.beyond(k) || now != nil && now.segment == s {
			return nil
		}
		k.segment, k.listed = s, true
		next.add(k)
		return nil
	})
}
