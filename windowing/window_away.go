package windowing

import (
	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// Groups that are on disk leave memory where it is bounded, those of the oldest
// slices first: late rows are few. A row of such a group brings it back, and the
// filter of the slice tells most groups that were never there. A window with a
// slice of which groups are away is handed out in pages, see window_pages.go.
//
// Only groups that come out once leave: revisions are kept in memory by group.

// awayGroups are the groups of a slice that are on disk only.
type awayGroups struct {
	count  int
	filter filter // what is away, or was
}

var _ Bounded = (*Window)(nil)

// Bound implements Bounded.
func (w *Window) Bound(bytes int64, committed kv.Reader) {
	if w.config.Revises() || w.config.Fill != NoFill {
		return
	}
	w.resident.Bound(bytes, committed)
}

// Committed implements Bounded.
func (w *Window) Committed() {
	w.committed()
	w.held = w.heldBytes()
	if !w.full() || w.closing.table != nil { // pages stand on the groups in memory
		return
	}
	clear(w.blocks.tables)
	w.closing = closing{}
	excess := w.excess()
	for _, s := range w.state.ordered {
		if excess <= 0 {
			break
		}
		excess -= w.leave(s)
	}
	w.held = w.heldBytes()
}

// heldBytes is about what the operator takes in memory.
func (w *Window) heldBytes() (n int64) {
	for _, s := range w.state.ordered {
		n += w.sliceBytes(s) + s.away.filter.bytes()
	}
	return n
}

// A group takes its places in the table of keys and in three lists, and for each
// aggregate an accumulator, which takes about as much in memory again as on disk.
const (
	groupBytes       = 48
	accumulatorBytes = 64
)

func (w *Window) sliceBytes(s *timeSlice) int64 {
	each := int64(groupBytes + accumulatorBytes*len(s.columns) + 2*w.weight)
	return int64(s.groups.count())*each + int64(len(s.groups.keys))
}

// leave lets the groups of a slice that are on disk leave memory, and says how many
// bytes that gives back.
func (w *Window) leave(s *timeSlice) (freed int64) {
	freed = w.sliceBytes(s)
	whole := *s
	s.groups, s.columns, s.dirty, s.changed = keyTable{}, newColumns(w.config.Aggregates), nil, nil
	left := 0
	for n := range uint32(whole.groups.count()) {
		key := whole.groups.key(n)
		if whole.dirty[n] {
			number, _ := s.place(key)
			s.set(number, w.of(&whole, n))
			s.dirty = append(s.dirty, true)
			s.changed = append(s.changed, number)
			continue
		}
		left++
		if hash := hashOfKey(key); !s.away.filter.has(hash) { // what was read back is there
			if s.away.filter.empty() {
				s.away.filter.reserve(whole.groups.count())
			}
			s.away.filter.add(hash)
		}
	}
	s.away.count += left
	w.state.away += left
	w.state.groups -= left
	return freed - w.sliceBytes(s)
}

// bring puts the accumulators of a group that is new in memory in where it is away.
// What cannot be read is kept in w.failure: the step breaks.
func (w *Window) bring(s *timeSlice, number uint32) {
	key := s.groups.key(number)
	if s.away.count == 0 || !s.away.filter.has(hashOfKey(key)) {
		return
	}
	found, err := w.fetch(s, key)
	if err != nil && w.failure == nil {
		w.failure = err
	}
	if found != nil {
		s.set(number, found)
		s.away.count--
		w.state.away--
	}
}

// fetch reads a group back, nil where it is not there.
func (w *Window) fetch(s *timeSlice, group []byte) ([]agg.Accumulator, error) {
	w.key = append(appendSpanKey(w.key[:0], groupTable, s.span), group...)
	value, err := w.disk.Get(w.key)
	if value == nil || err != nil {
		return nil, err
	}
	found, err := w.decode(value)
	if err != nil {
		return nil, recordError(w.key, err)
	}
	return found, nil
}

// loadAway notes that a group is on disk.
func (w *Window) loadAway(key, value []byte) error {
	s, name, err := w.loadSlice(key)
	if err != nil {
		return err
	}
	if _, err := openWindowRecord(value); err != nil {
		return err
	}
	s.away.filter.add(hashOfKey(name))
	s.away.count++
	w.state.away++
	w.weight = max(w.weight, len(value))
	return nil
}

// loadSlice opens the slice of the record of a group.
func (w *Window) loadSlice(key []byte) (s *timeSlice, group []byte, err error) {
	span, group, err := splitGroupKey(key)
	if err != nil {
		return nil, nil, err
	}
	if !w.isSlice(span) {
		return nil, nil, w.strangeSpan("a slice", span)
	}
	if err := w.checkGroup(group); err != nil {
		return nil, nil, err
	}
	s = w.state.open(span)
	s.saved = true
	return s, group, nil
}
