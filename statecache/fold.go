package statecache

import (
	bolt "go.etcd.io/bbolt"
)

// A frozen table is ordered first, a portion with each commit, in a third of
// the time until the next one is due; then it is folded in half of it. The work
// of folding within one commit is bounded three ways. Items: the share of the
// table that the commit's bytes are of half a generation. Pages: distinct random
// keys touch a page each, whatever they weigh. Deletes: one deleted range may
// hold any part of the base.
//
// Where the pages or deletes do not suffice, the active generation grows past
// its size, and the larger it grows the more the next commits fold: memory
// stays bounded, and a larger generation touches fewer pages for each key.
const (
	orderShare  = 3       // bytes to order for each byte committed
	orderBytes  = 1 << 14 // at least, with each commit
	foldItems   = 16      // at least, with each commit
	foldPages   = 128     // at most
	foldDeletes = 1024    // at most
	basePercent = 0.7     // how full bbolt leaves a split page of the base
)

type budget struct {
	items, deletes int
	pages          int64
}

func (s *spaceState) budget(size, generation int) budget {
	press := 1 + s.active.bytes/generation
	share := int(int64(s.work) * int64(size) / int64(generation/2+1))
	return budget{
		items:   (foldItems + share) * press,
		deletes: foldDeletes * press,
		pages:   int64(foldPages * press),
	}
}

// foldSlice folds the next slice of n.frozen, for a commit of size bytes, and
// lets the generation go where it was the last.
func (s *Space) foldSlice(b *bolt.Bucket, n *spaceState, size int) error {
	if n.work == 0 {
		all, err := n.frozen.table.orderSome(max(orderBytes, orderShare*size))
		if !all || err != nil {
			return err
		}
		n.work = n.frozen.table.items()
	}
	base, err := b.CreateBucketIfNotExists(bucketBase)
	if err != nil {
		return err
	}
	base.FillPercent = basePercent
	f := folder{base: base, table: &n.frozen.table, pos: n.pos, budget: n.budget(size, s.generation)}
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
	err = dropLog(b, n.frozen)
	n.frozen, n.pos, n.work = nil, "", 0
	return err
}

// folder moves a table into a base in key order. Everything below pos is
// there; to do a part again does no harm.
type folder struct {
	budget
	base   *bolt.Bucket
	table  *table
	pos    string
	stored []byte
}

// touched counts the pages that the transaction took up so far.
func (f *folder) touched() int64 {
	stats := f.base.Tx().Stats()
	return stats.GetNodeCount()
}

func (f *folder) left() bool {
	return f.items > 0 && f.deletes > 0 && f.touched() < f.pages
}

// run works until the budget is spent (false) or the table is in the base.
// Where a put stands inside a deleted range, the range is taken up to it.
func (f *folder) run() (done bool, err error) {
	puts := f.table.puts.Seek(f.pos)
	for f.left() {
		from, to, ranges := f.table.deleted.next(f.pos)
		from = max(from, f.pos)
		switch {
		case ranges && (!puts.Valid() || from < puts.Key()):
			if puts.Valid() && before(puts.Key(), to) {
				to = puts.Key()
			}
			if done, err = f.erase(from, to); done || err != nil {
				return done, err
			}
		case puts.Valid():
			if err := f.put(puts.Key(), *puts.Value()); err != nil {
				return false, err
			}
			puts.Next()
		default:
			return true, nil
		}
	}
	return false, nil
}

func (f *folder) put(key string, value []byte) error {
	f.items--
	f.stored = appendStored(f.stored[:0], raw(key))
	f.pos = key + "\x00"
	return f.base.Put(f.stored, appendEntry(make([]byte, 0, len(value)+recordFrame), f.stored, raw(key), value))
}

// erase deletes [from, to) from the base, as much as the budget allows. True
// says that this was the end of all keys.
func (f *folder) erase(from, to string) (end bool, err error) {
	f.items--
	if to == from+"\x00" {
		f.deletes--
		f.pos = to
		f.stored = appendStored(f.stored[:0], raw(from))
		return false, f.base.Delete(f.stored)
	}
	// Collect, then delete: a cursor skips entries of a leaf that changes
	// under it.
	var doomed [][]byte
	f.pos = to
	resume, err := walk(f.base, storedFloor(raw(from)), raw(from), raw(to), func(e entry) bool {
		doomed = append(doomed, append([]byte(nil), e.stored...))
		f.deletes--
		f.pos = string(e.key) + "\x00"
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
