package statecache

import (
	bolt "go.etcd.io/bbolt"
)

// A frozen generation, see rest, waits until the active one is half full: what that
// puts or deletes again need not reach the base, for it is looked at first, in memory
// and after a crash, and brings or deletes the key when it is folded itself. What is
// left of the frozen one is put in order over an eighth of a generation, and then
// folded in three eighths. The work of folding within one commit is bounded three
// ways. Items: the share of what is left that the commit's bytes are of the time for
// it. Pages: distinct random keys touch a page each, whatever they weigh. Deletes: one
// deleted range may hold any part of the base. A large commit may touch a quarter of
// the pages that it writes itself: the more a fold is put off, the less is left of it.
//
// Where the pages or deletes do not suffice, the active generation grows past
// its size, and the larger it grows the more the next commits fold: memory
// stays bounded, and a larger generation touches fewer pages for each key.
const (
	foldDelay   = 2       // part of a generation to wait for
	foldStep    = 1 << 14 // bytes that a commit counts for at least, while it waits and sifts
	siftShare   = 8       // part of a generation in which one is sifted
	siftItems   = 64      // at least, with each commit
	foldItems   = 16      // at least, with each commit
	foldPages   = 128     // at most
	foldDeletes = 1024    // at most
	basePercent = 0.7     // how full bbolt leaves a split page of the base
)

type budget struct {
	items, deletes int
	pages          int64
}

func (s *spaceState) budget(size, generation, pageSize int) budget {
	press := 1 + s.active.bytes/generation
	share := int(int64(s.work) * int64(size) / int64(max(generation, s.frozen.bytes)*3/8+1))
	return budget{
		items:   (foldItems + share) * press,
		deletes: max(foldDeletes, size/putBytes) * press,
		pages:   int64(max(foldPages, size/pageSize/4) * press),
	}
}

// foldSlice folds the next slice of n.frozen, for a commit of size bytes, and
// lets the generation go where it was the last.
func (s *Space) foldSlice(b *bolt.Bucket, n *spaceState, size int) error {
	if !s.tight && n.age < s.generation/foldDelay {
		return nil
	}
	g := n.frozen
	if n.work == 0 {
		share := int64(len(g.index.entries)) * siftShare * int64(max(size, foldStep)) / int64(max(s.generation, g.bytes))
		if all := g.sift(&n.active.index, n.pos, siftItems+int(share)); !all {
			return nil
		}
		n.work = 1 + g.rest.size + g.index.deleted.m.Len()
	}
	base, err := b.CreateBucketIfNotExists(bucketBase)
	if err != nil {
		return err
	}
	base.FillPercent = basePercent
	f := folder{base: base, frozen: g, active: &n.active.index, pos: n.pos, budget: n.budget(size, s.generation, s.db.Info().PageSize)}
	if s.tight {
		press := 1 + n.active.bytes/s.generation
		f.pages += int64(press * 2 * size / s.db.Info().PageSize)
		f.deletes += press * size / putBytes
	}
	f.pages += f.touched()
	done, err := f.run()
	if err != nil {
		return err
	}
	n.pos = f.pos
	if !done {
		return nil
	}
	n.thaw()
	return dropLog(b, g)
}

// folder moves the rest of a generation into a base in key order. Everything below
// pos is there, or the active generation decides about it; to do a part again does
// no harm.
type folder struct {
	budget
	base   *bolt.Bucket
	frozen *generation
	active *index
	pos    string
	stored []byte
	arena  []byte
}

// touched counts the pages that the transaction took up so far.
func (f *folder) touched() int64 {
	stats := f.base.Tx().Stats()
	return stats.GetNodeCount()
}

func (f *folder) left() bool {
	return f.items > 0 && f.deletes > 0 && f.touched() < f.pages
}

// run works until the budget is spent (false) or the generation is in the base.
// Where a key stands inside a deleted range, the range is taken up to it.
func (f *folder) run() (done bool, err error) {
	x, rest := &f.frozen.index, &f.frozen.rest
	rest.seek(x, f.pos)
	from, to, ranges := x.deleted.next(f.pos)
	for f.left() {
		if ranges && !before(f.pos, to) {
			from, to, ranges = x.deleted.next(f.pos)
		}
		from = max(from, f.pos)
		switch more := len(rest.heads) > 0; {
		case ranges && (!more || from < rest.heads[0].key):
			part := to
			if more {
				part = sooner(to, rest.heads[0].key)
			}
			if done, err = f.erase(from, part); done || err != nil {
				return done, err
			}
		case more:
			if err := f.move(rest.heads[0].key, &x.entries[rest.heads[0].run[0]]); err != nil {
				return false, err
			}
			rest.next(x)
		default:
			return true, nil
		}
	}
	rest.pos, rest.placed = f.pos, true
	return false, nil
}

// move does to the base what the newest operation on a key did, unless the active
// generation has decided about it since.
func (f *folder) move(key string, e *indexed) error {
	f.items--
	f.pos = key + "\x00"
	if f.active.decides(e.hash, raw(key)) {
		return nil
	}
	f.stored = appendStored(f.stored[:0], raw(key))
	if e.gone() {
		f.deletes--
		return f.base.Delete(f.stored)
	}
	return f.base.Put(f.stored, f.entry(raw(key), f.frozen.index.value(e)))
}

// arenaSize is how much memory for records is taken at once.
const arenaSize = 64 << 10

// entry makes a record of the base, good until the transaction ends.
func (f *folder) entry(key, value []byte) []byte {
	if size := len(value) + recordFrame; cap(f.arena)-len(f.arena) < size {
		f.arena = make([]byte, 0, max(size, arenaSize))
	}
	from := len(f.arena)
	f.arena = appendEntry(f.arena, f.stored, key, value)
	return f.arena[from:len(f.arena):len(f.arena)]
}

// erase deletes [from, to) from the base, as much as the budget allows. True
// says that this was the end of all keys.
func (f *folder) erase(from, to string) (end bool, err error) {
	f.items--
	if known, _, ok := f.active.deleted.covers(from); ok {
		f.pos = sooner(to, known)
		return f.pos == "", nil
	}
	// Collect, then delete: a cursor skips entries of a leaf that changes
	// under it.
	var doomed [][]byte
	f.pos = to
	resume, err := walk(f.base, storedFloor(raw(from)), raw(from), raw(to), func(e entry) bool {
		f.pos = string(e.key) + "\x00"
		f.deletes--
		// What is put again stays: a scan that began before it was deleted reads it here.
		if f.active.find(hashOf(e.key), e.key) == nil {
			doomed = append(doomed, append([]byte(nil), e.stored...))
		}
		return f.deletes > 0
	})
	if err != nil {
		return false, err
	}
	for _, k := range doomed {
		if err := f.base.Delete(k); err != nil {
			return false, err
		}
	}
	if resume == nil {
		f.pos = to
	}
	return resume == nil && to == "", nil
}
