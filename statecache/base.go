package statecache

import (
	"bytes"
	"fmt"
	"sort"

	bolt "go.etcd.io/bbolt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// entry is a record of the base, opened and checked.
type entry struct{ stored, key, value []byte }

// walk visits the entries of b with a stored key >= start and a key in
// [from, to), in the order of the keys, and stops after a run or an entry for
// which visit returned false. It reports the stored key after which it
// stopped, nil at the end. Slices are valid during the transaction.
func walk(b *bolt.Bucket, start, from, to []byte, visit func(entry) bool) (resume []byte, err error) {
	w := walker{c: b.Cursor()}
	var one [1]entry
	for ok := w.seek(start); ok; {
		run := one[:0]
		if run, ok, err = w.run(run); err != nil {
			return nil, err
		}
		more := true
		for _, e := range run {
			switch {
			case bytes.Compare(e.key, from) < 0:
			case len(to) > 0 && bytes.Compare(e.key, to) >= 0:
				return nil, nil
			default:
				more = visit(e) && more
			}
		}
		if !more {
			return w.last, nil
		}
	}
	return nil, nil
}

// walker reads ahead by one entry, to know where a run ends.
type walker struct {
	c    *bolt.Cursor
	k, v []byte
	last []byte // the stored key before k
}

func (w *walker) seek(start []byte) (ok bool) {
	w.k, w.v = w.c.Seek(start)
	return w.k != nil
}

// run appends the entry under the cursor, or the whole run that it begins,
// sorted, and moves on; false says that nothing follows.
func (w *walker) run(dst []entry) (run []entry, ok bool, err error) {
	for prefix := runOf(w.k); ; {
		if bytes.Compare(w.last, w.k) >= 0 {
			return nil, false, fmt.Errorf("key %.40q follows key %.40q: %w", w.k, w.last, kv.ErrCorrupt)
		}
		key, value, err := openEntry(w.k, w.v)
		if err != nil {
			return nil, false, err
		}
		dst, w.last = append(dst, entry{w.k, key, value}), w.k
		w.k, w.v = w.c.Next()
		if prefix == nil || !bytes.Equal(prefix, runOf(w.k)) {
			break
		}
	}
	if len(dst) > 1 {
		sort.Slice(dst, func(i, j int) bool { return bytes.Compare(dst[i].key, dst[j].key) < 0 })
	}
	return dst, w.k != nil, nil
}

// checkAbsent looks at the neighbours of a place where a key should be and is
// not: keys that a damaged page lost or scrambled lead a search astray, and
// then the checksum or the order next to where it ended is wrong.
func checkAbsent(b *bolt.Bucket, stored []byte) error {
	c := b.Cursor()
	k, v := c.Seek(stored)
	if k != nil {
		if _, _, err := openEntry(k, v); err != nil {
			return err
		}
		if bytes.Compare(k, stored) < 0 {
			return fmt.Errorf("key %.40q comes after key %.40q: %w", k, stored, kv.ErrCorrupt)
		}
		k, v = c.Prev()
	} else {
		k, v = c.Last()
	}
	if k == nil {
		return nil
	}
	if _, _, err := openEntry(k, v); err != nil {
		return err
	}
	if bytes.Compare(k, stored) >= 0 {
		return fmt.Errorf("key %.40q comes before key %.40q: %w", k, stored, kv.ErrCorrupt)
	}
	return nil
}

// lookup returns the value of key, nil where it is absent; it aliases the
// file.
func lookup(b *bolt.Bucket, key []byte) ([]byte, error) {
	stored := appendStored(make([]byte, 0, min(1+len(key), storedLong)), key)
	record := b.Get(stored)
	if record == nil {
		return nil, checkAbsent(b, stored)
	}
	full, value, err := openEntry(stored, record)
	if err == nil && !bytes.Equal(full, key) {
		err = fmt.Errorf("two keys of %d and %d bytes with one SHA-256: %w", len(full), len(key), kv.ErrCorrupt)
	}
	return value, err
}

// A scan of the base copies a piece at a time, so that no transaction is open
// while the caller looks at it. Pieces grow: most scans are short.
const (
	firstPiece = 32
	mostPiece  = 1024
	pieceBytes = 256 << 10
)

// baseScan is a scan of a base in pieces.
type baseScan struct {
	space    *Space
	from, to []byte // of the keys still wanted
	start    []byte // stored key from which to read on; nil: all is read
	piece    []entry
	i        int
	size     int
	arena    []byte
}

func (s *Space) scanBase(from, to []byte) *baseScan {
	return &baseScan{space: s, from: from, to: to, start: storedFloor(from), size: firstPiece}
}

// peek returns the next entry, nil at the end.
func (c *baseScan) peek() (*entry, error) {
	for c.i == len(c.piece) {
		if c.start == nil {
			return nil, nil
		}
		if err := c.read(); err != nil {
			return nil, err
		}
	}
	return &c.piece[c.i], nil
}

// skipTo leaves out the entries below key. Far ones are not even read.
func (c *baseScan) skipTo(key []byte) {
	for c.i < len(c.piece) && bytes.Compare(c.piece[c.i].key, key) < 0 {
		c.i++
	}
	if floor := storedFloor(key); c.i == len(c.piece) && c.start != nil && bytes.Compare(floor, c.start) > 0 {
		c.start = floor
	}
	if bytes.Compare(key, c.from) > 0 {
		c.from = key
	}
}

// read fills the next piece.
func (c *baseScan) read() error {
	c.piece, c.i, c.arena = c.piece[:0], 0, c.arena[:0]
	start := c.start
	c.start = nil
	err := c.space.viewBase("scanning state", func(b *bolt.Bucket) error {
		if b.Get(start) == nil {
			if err := checkAbsent(b, start); err != nil {
				return err
			}
		}
		last, err := walk(b, start, c.from, c.to, func(e entry) bool {
			c.piece = append(c.piece, entry{key: c.copy(e.key), value: c.copy(e.value)})
			return len(c.piece) < c.size && len(c.arena) < pieceBytes
		})
		if last != nil {
			c.start = kv.After(last)
		}
		return err
	})
	c.size = min(4*c.size, mostPiece)
	return err
}

// copy keeps bytes in the arena of the piece. Where the arena moves, earlier
// copies stay where they are.
func (c *baseScan) copy(b []byte) []byte {
	at := len(c.arena)
	c.arena = append(c.arena, b...)
	return c.arena[at:len(c.arena):len(c.arena)]
}
