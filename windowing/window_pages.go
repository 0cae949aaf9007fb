package windowing

import (
	"bytes"
	"errors"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// pages hand a window out whose groups are not all in memory: in the order of keys,
// a page for each call, merged from what its slices have in memory and on disk.
type pages struct {
	streams minHeap[*groupStream]
	single  bool // the window has one slice
}

// leastPage is how many groups are read from a slice at once at least.
const leastPage = 64

var errPageFull = errors.New("page is full")

// groupStream gives the groups of one slice in the order of their keys.
type groupStream struct {
	slice *timeSlice
	order []ranked // in memory, not given yet
	disk  []stored // read and not given yet
	next  []byte   // the key from which to read on, nil: all was read
	limit int      // of a page
}

// stored is a group as it stands on disk.
type stored struct{ key, value []byte }

// isAway says that groups of a window are on disk only.
func isAway(parts []*timeSlice) bool {
	for _, s := range parts {
		if s.away.count > 0 {
			return true
		}
	}
	return false
}

// beginPages opens a window behind the cursor.
func (w *Window) beginPages(parts []*timeSlice, limit int) error {
	p := &pages{single: len(parts) == 1}
	w.closing.pages = p
	from := []byte{}
	if w.cursor.set && w.cursor.span == w.closing.window {
		from = kv.After(w.cursor.group)
	}
	for _, s := range parts {
		g := &groupStream{slice: s, next: from, limit: max(leastPage, limit/len(parts))}
		g.order = s.groups.rank(nil)
		for len(g.order) > 0 && bytes.Compare(s.groups.key(g.order[0].number), from) < 0 {
			g.order = g.order[1:]
		}
		if err := w.advance(p, g); err != nil {
			return err
		}
	}
	return nil
}

// page fills the table of the closing with up to limit groups.
func (w *Window) page(limit int) error {
	c := &w.closing
	c.table.clear()
	c.order = c.order[:0]
	for len(c.order) < limit && len(c.pages.streams) > 0 {
		key := c.pages.streams[0].key()
		number, _ := c.table.place(key)
		c.order = append(c.order, ranked{number: number})
		key = c.table.groups.key(number)
		for len(c.pages.streams) > 0 && bytes.Equal(c.pages.streams[0].key(), key) {
			g := c.pages.streams.pop()
			found, read, err := w.give(g)
			if err != nil {
				return err
			}
			if c.pages.single && read {
				c.table.set(number, found)
			} else {
				c.table.mergeIn(number, found)
			}
			if err := w.advance(c.pages, g); err != nil {
				return err
			}
		}
	}
	c.groups = c.order
	return nil
}

// advance puts a stream back where it has more groups.
func (w *Window) advance(p *pages, g *groupStream) error {
	if len(g.disk) == 0 && g.next != nil {
		if err := w.read(g); err != nil {
			return err
		}
	}
	if len(g.order) > 0 || len(g.disk) > 0 {
		p.streams.push(g)
	}
	return nil
}

// read gets the next groups of a slice from disk.
func (w *Window) read(g *groupStream) error {
	prefix := appendSpanKey(nil, groupTable, g.slice.span)
	from := append(bytes.Clone(prefix), g.next...)
	g.disk, g.next = nil, nil
	err := w.disk.Scan(from, kv.PrefixEnd(prefix), func(key, value []byte) error {
		if len(g.disk) == g.limit {
			g.next = bytes.Clone(key[len(prefix):])
			return errPageFull
		}
		g.disk = append(g.disk, stored{bytes.Clone(key[len(prefix):]), bytes.Clone(value)})
		return nil
	})
	if errors.Is(err, errPageFull) {
		return nil
	}
	return err
}

// give takes the first group out of a stream. What is in memory is newer than what
// is on disk, and stays the slice's: only what was read may be put elsewhere.
func (w *Window) give(g *groupStream) (found []agg.Accumulator, read bool, err error) {
	key := g.key()
	if len(g.order) > 0 && bytes.Equal(g.slice.groups.key(g.order[0].number), key) {
		found = w.of(g.slice, g.order[0].number)
		g.order = g.order[1:]
	}
	if len(g.disk) == 0 || !bytes.Equal(g.disk[0].key, key) {
		return found, false, nil
	}
	value := g.disk[0].value
	g.disk = g.disk[1:]
	if found != nil {
		return found, false, nil
	}
	if found, err = w.decode(value); err != nil {
		return nil, false, recordError(appendSpanKey(nil, groupTable, g.slice.span), err)
	}
	return found, true, nil
}

// key is that of the first group; there must be one.
func (g *groupStream) key() []byte {
	switch {
	case len(g.order) == 0:
		return g.disk[0].key
	case len(g.disk) == 0:
		return g.slice.groups.key(g.order[0].number)
	}
	if inMemory := g.slice.groups.key(g.order[0].number); bytes.Compare(inMemory, g.disk[0].key) < 0 {
		return inMemory
	}
	return g.disk[0].key
}

// before is the order of keys.
func (g *groupStream) before(other *groupStream) bool {
	return bytes.Compare(g.key(), other.key()) < 0
}
