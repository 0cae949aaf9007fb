package windowing

import (
	"slices"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// enter puts a row with its key and segment into memory.
func (j *Join) enter(it *joinRow) {
	it.key.insert(it)
	it.segment.first = min(it.segment.first, it.time)
	j.held += it.bytes()
	j.rows++
	if j.outer[it.side] {
		j.due[it.side].push(it)
	} else {
		it.segment.list = append(it.segment.list, it)
	}
}

// keyOf gives the key of a name, made where there is none.
func (j *Join) keyOf(name []byte) *joinKey {
	k := j.keys[string(name)]
	if k == nil {
		k = &joinKey{name: string(name)}
		j.keys[k.name] = k
	}
	return k
}

// bringBack reads back the rows of a side that may be partners of a row.
func (j *Join) bringBack(row *Row, side int) error {
	reach := stretch{row.Time.Add(j.low), row.Time.Add(j.high)}
	if side == LeftSide {
		reach = stretch{row.Time.Add(negated(j.high)), row.Time.Add(negated(j.low))}
	}
	if k := j.keys[string(row.Key)]; k != nil && k.whole != nil && k.whole[side].holds(reach) {
		return nil
	}
	hash := hashOfKey(row.Key)
	list := j.segments[side]
	for _, s := range list[list.ending(reach.from):] {
		if s.away == 0 || s.first > reach.to || !s.filter.has(hash) {
			continue
		}
		if err := j.readKey(s, side, row.Key); err != nil {
			return err
		}
	}
	if k := j.keys[string(row.Key)]; k != nil {
		if k.whole == nil {
			k.whole = &[2]stretch{nowhere, nowhere}
		}
		k.whole[side] = k.whole[side].joined(reach)
	}
	return nil
}

// readKey reads back the rows of a key in a segment.
func (j *Join) readKey(s *segment[*joinRow], side int, key []byte) error {
	from := append(appendSegment(nil, joinTable+byte(side), s.last), key...)
	return j.readRows(s, from, func(it *joinRow) {
		if !it.key.has(it) {
			s.away--
			it.listed = true
			j.enter(it)
		}
	})
}

// readRows visits the rows of a segment whose records begin with a prefix, and that
// are not over.
func (j *Join) readRows(s *segment[*joinRow], prefix []byte, visit func(*joinRow)) error {
	var last *joinRow
	flush := func() {
		if last != nil && !j.over(last) {
			visit(last)
		}
		if last != nil && last.key.empty() {
			delete(j.keys, last.key.name)
		}
		last = nil
	}
	err := j.disk.Scan(prefix, kv.PrefixEnd(prefix), func(key, value []byte) error {
		it, err := j.decode(last, key, value)
		if err != nil {
			return recordError(key, err)
		}
		if it != last {
			flush()
			it.segment = s
			it.key = j.keyOf(it.name(key))
		}
		last = it
		return nil
	})
	if err == nil {
		flush()
	}
	return err
}

// approach reads back the rows of an outer side that come out next, as many as a part
// of memory takes, and moves the horizon behind them.
func (j *Join) approach(side int) error {
	next := newNearest[*joinRow](j.bound)
	err := next.approach(j.segments[side].beyond(j.horizon[side]), func(s *segment[*joinRow]) error {
		return j.readRows(s, appendSegment(nil, joinTable+byte(side), s.last), func(it *joinRow) {
			if it.matches == 0 && !next.beyond(it) && !it.key.has(it) {
				it.listed = true
				next.add(it)
			}
		})
	})
	if err != nil {
		return err
	}
	for _, it := range next.list {
		it.key = j.keyOf([]byte(it.key.name))
		it.segment.away--
		j.enter(it)
	}
	j.horizon[side] = next.horizon
	return nil
}

// Committed implements Bounded.
func (j *Join) Committed() {
	j.committed()
	j.shed()
}

// shed lets rows leave memory where it is full, the older ones first.
func (j *Join) shed() {
	if !j.full() {
		return
	}
	excess := j.excess()
	for side := range j.segments {
		if !j.mayLeave(side) {
			continue
		}
		if j.outer[side] {
			slices.SortFunc(j.due[side], inOrder) // which is a heap
			j.due[side] = shedFrom(j.due[side], &excess, j.leave)
			continue
		}
		for _, s := range j.segments[side] {
			s.list = shedFrom(s.list, &excess, j.leave)
		}
	}
	j.stuck = excess > 0
}

// mayLeave says that rows of a side leave memory. Those of an outer side that are
// not evicted in their order wait for the watermark only.
func (j *Join) mayLeave(side int) bool { return j.bounded() && (!j.outer[side] || j.ordered(side)) }

// leave lets a row leave memory, if it is on disk and not about to come out, and says
// how many bytes that gives back.
func (j *Join) leave(it *joinRow) (freed int64, left bool) {
	switch {
	case it.gone:
		return 0, true
	case j.outer[it.side] && !j.horizon[it.side].before(it.stands()):
		return 0, false
	case it.dirty || it.fresh || it.saved >= j.durable:
		return 0, false
	}
	if it.key.whole != nil {
		it.key.whole[it.side] = nowhere
	}
	j.forget(it)
	j.held += j.segments[it.side].leave(it.segment, hashOfKey([]byte(it.key.name)), it.listed, j.few())
	return it.bytes(), true
}
