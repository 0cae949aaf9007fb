package statecache

import (
	"slices"
	"sort"
	"sync"
	"unsafe"

	"github.com/connect-windowed/connect-windowed/statecache/internal/ordered"
	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// table is what a generation of the log says, in key order. Keys and values
// are spans of the log records, which it keeps; nothing is copied.
//
// It is for scans: Get and the fold go by the index. Records are put aside when they
// come and ordered when somebody scans.
//
// An entry of puts is newer than every range of deleted that holds it: a
// delete removes the puts in its range, and a later put does not cut the
// range. So a key found in puts has its value, else one inside a deleted range
// is gone, else the layers below decide.
type table struct {
	puts    ordered.Map[[]byte]
	deleted ranges

	mu    sync.Mutex // protects what follows, and puts and deleted while pins is 0
	aside [][]byte   // batches not ordered yet, oldest first
	pins  int        // reads that look at puts and deleted, which do not change meanwhile
}

// apply takes up the operations of a batch, which must not change any more.
func (t *table) apply(batch []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.aside = append(t.aside, batch)
}

// pin makes puts and deleted say what was applied, and keeps them so until unpin.
// Where another read keeps them as they were before the last batches, newer holds
// those.
func (t *table) pin() (newer *table, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.pins == 0:
		err = t.orderLocked()
	case len(t.aside) > 0:
		newer = &table{aside: slices.Clone(t.aside)}
		err = newer.orderLocked()
	}
	if err != nil {
		return nil, err
	}
	t.pins++
	return newer, nil
}

func (t *table) unpin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pins--
}

// orderLocked takes on what was put aside.
func (t *table) orderLocked() error {
	if len(t.aside) == 0 {
		return nil
	}
	var f fresh
	if err := f.read(t.aside); err != nil {
		return err
	}
	t.aside = nil
	for _, r := range f.deleted {
		t.puts.DeleteRange(r.from, r.to)
		t.deleted.add(r.from, r.to)
	}
	for _, m := range f.sorted() {
		p := &f.puts[m.put]
		t.puts.Set(p.key, p.value)
	}
	return nil
}

// fresh is what batches say together that nothing has ordered yet.
type fresh struct {
	puts    []freshPut // in the order in which they apply
	deleted []freshRange
}

type freshRange struct {
	from, to string
	puts     uint32 // those before it
}

// putBytes is what a small assignment takes in a batch, to guess how many there are.
const putBytes = 64

func (f *fresh) read(batches [][]byte) error {
	size := 0
	for _, batch := range batches {
		size += len(batch)
	}
	f.puts = make([]freshPut, 0, size/putBytes)
	for _, batch := range batches {
		err := kv.ReadBatch(batch,
			func(key, value []byte) {
				f.puts = append(f.puts, freshPut{text(key), value})
			},
			func(from, to []byte) {
				f.deleted = append(f.deleted, freshRange{text(from), text(to), uint32(len(f.puts))})
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// sorted gives the last put on each key that no later delete took, in the order
// of keys.
func (f *fresh) sorted() []mark {
	marks := slices.DeleteFunc(sortedMarks(f.puts), func(m mark) bool { return m.again })
	if len(f.deleted) == 0 {
		return marks
	}
	taken := make([]bool, len(f.puts))
	for _, r := range f.deleted {
		i := sort.Search(len(marks), func(i int) bool { return f.puts[marks[i].put].key >= r.from })
		for ; i < len(marks) && before(f.puts[marks[i].put].key, r.to); i++ {
			if marks[i].put < r.puts {
				taken[marks[i].put] = true
			}
		}
	}
	return slices.DeleteFunc(marks, func(m mark) bool { return taken[m.put] })
}

// layers are the tables of a Space as a read sees them, newest first.
type layers struct {
	tables []*table
	pinned []*table
}

// layers pins the tables of the Space. The caller releases them.
func (s *Space) layers() (l layers, err error) {
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	for _, g := range state.generations() {
		newer, err := g.table.pin()
		if err != nil {
			l.release()
			return l, err
		}
		l.pinned = append(l.pinned, &g.table)
		if newer != nil {
			l.tables = append(l.tables, newer)
		}
		l.tables = append(l.tables, &g.table)
	}
	return l, nil
}

func (l *layers) release() {
	for _, t := range l.pinned {
		t.unpin()
	}
}

// ranges is a set of disjoint half-open ranges, from -> to; an empty to means
// the end of all keys.
type ranges struct{ m ordered.Map[string] }

// add unites the set with [from, to).
func (r *ranges) add(from, to string) {
	if c := r.m.Before(from); c.Valid() && !above(from, *c.Value()) {
		from = c.Key()
	}
	c := r.m.Seek(from)
	for ; c.Valid() && !above(c.Key(), to); c.Next() {
		to = later(to, *c.Value())
	}
	rest := "" // the first range that stays, or the end
	if c.Valid() {
		rest = c.Key()
	}
	r.m.DeleteRange(from, rest)
	r.m.Set(from, to)
}

// covers says whether a range holds key, and where that range ends.
func (r *ranges) covers(key string) (to string, ok bool) {
	if r.m.Len() == 0 {
		return "", false
	}
	c := r.m.Before(key)
	if !c.Valid() || !before(key, *c.Value()) {
		return "", false
	}
	return *c.Value(), true
}

// before, above and later compare with the end of a range, where the empty
// text is the end of all keys.
func before(key, to string) bool { return to == "" || key < to }
func above(key, to string) bool  { return to != "" && key > to }
func later(a, b string) string {
	if a == "" || b == "" {
		return ""
	}
	return max(a, b)
}

// sooner is the earlier of two ends of ranges.
func sooner(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return min(a, b)
}

// text and raw see bytes as text and back without a copy. The bytes must not
// change while the text lives.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
func raw(s string) []byte  { return unsafe.Slice(unsafe.StringData(s), len(s)) }
