// Package ordered has a sorted map for large key sets that change all the time.
//
// It is a B-tree of two levels: a slice of blocks, each a sorted run of at
// most maxBlock keys. Search is two binary searches, an insertion moves at
// most one block, a range delete drops whole blocks. Reads change nothing, so
// any number of them may overlap as long as no write does.
package ordered

import (
	"encoding/binary"
	"slices"
	"sort"
)

// maxBlock bounds a block; minBlock is where a block is merged with a
// neighbour, so that scattered deletes do not leave a trail of tiny blocks.
const (
	maxBlock = 256
	minBlock = maxBlock / 8
)

// block is a sorted run. A search in it reads numbers that lie side by side
// and not the keys, which are anywhere in memory: a miss of the cache for each
// comparison is most of what a search costs.
type block[V any] struct {
	keys []string
	vals []V
	// nums[i] is the 8 bytes of keys[i] behind the first `common` bytes, which
	// all keys of the block share.
	nums   []uint64
	common int
}

// Map is a sorted map from string to V. The zero value is empty and ready.
// One goroutine may write; reads may overlap reads, never a write.
type Map[V any] struct {
	// firsts[i] is blocks[i].keys[0]: the upper search stays in one array.
	firsts []string
	blocks []*block[V]
	size   int
	last   int // the block of the last Set: keys often come in order
}

// Len is the number of keys.
func (m *Map[V]) Len() int { return m.size }

// At returns a pointer to the value of key, valid until the next write, or
// nil where key is absent.
func (m *Map[V]) At(key string) *V {
	if len(m.blocks) == 0 {
		return nil
	}
	b := m.blocks[m.block(key)]
	i, found := b.search(key)
	if !found {
		return nil
	}
	return &b.vals[i]
}

// Set inserts key or replaces its value. The map keeps the string it was
// given at the insertion; a replacement keeps the older string.
func (m *Map[V]) Set(key string, v V) {
	if len(m.blocks) == 0 {
		m.blocks = append(m.blocks, &block[V]{})
		m.firsts = append(m.firsts, key)
	}
	n := m.near(key)
	b := m.blocks[n]
	i, found := b.search(key)
	if found {
		b.vals[i] = v
		return
	}
	b.insert(i, key, v)
	m.firsts[n] = b.keys[0]
	m.size++
	if len(b.keys) > maxBlock {
		m.split(n)
	}
}

// Replace is Set where a present key's string is exchanged too: for a caller
// whose keys alias memory that it wants to let go.
func (m *Map[V]) Replace(key string, v V) {
	if p := m.At(key); p == nil {
		m.Set(key, v)
		return
	}
	n := m.block(key)
	b := m.blocks[n]
	i, _ := b.search(key)
	b.keys[i], b.vals[i] = key, v
	m.firsts[n] = b.keys[0]
}

// DeleteRange removes the keys in [from, to) and returns how many. An empty
// to means up to the end.
func (m *Map[V]) DeleteRange(from, to string) int {
	first := m.Seek(from)
	if !first.Valid() || !below(first.Key(), to) {
		return 0
	}
	last := m.end()
	if to != "" {
		last = m.Seek(to)
	}
	before := m.size
	if first.n == last.n {
		m.cut(first.n, first.i, last.i)
	} else {
		m.cut(first.n, first.i, len(m.blocks[first.n].keys))
		if last.n < len(m.blocks) {
			m.cut(last.n, 0, last.i)
		}
		m.drop(first.n+1, last.n)
	}
	m.tidy(first.n)
	return before - m.size
}

// Cursor is a place in a Map, good until the next write to it.
type Cursor[V any] struct {
	m    *Map[V]
	n, i int
}

// Seek returns a cursor at the first key >= from.
func (m *Map[V]) Seek(from string) Cursor[V] {
	if len(m.blocks) == 0 {
		return m.end()
	}
	n := m.block(from)
	i, _ := m.blocks[n].search(from)
	if i == len(m.blocks[n].keys) {
		n, i = n+1, 0
	}
	return Cursor[V]{m, n, i}
}

// Before returns a cursor at the largest key <= key; not Valid where none is.
func (m *Map[V]) Before(key string) Cursor[V] {
	if len(m.blocks) == 0 || key < m.firsts[0] {
		return m.end()
	}
	n := m.block(key)
	i, found := m.blocks[n].search(key)
	if !found {
		i--
	}
	return Cursor[V]{m, n, i}
}

// Valid says whether the cursor stands on a key.
func (c *Cursor[V]) Valid() bool { return c.n < len(c.m.blocks) }

// Key is the key under a Valid cursor.
func (c *Cursor[V]) Key() string { return c.m.blocks[c.n].keys[c.i] }

// Value is the value under a Valid cursor.
func (c *Cursor[V]) Value() *V { return &c.m.blocks[c.n].vals[c.i] }

// Next moves a Valid cursor to the following key.
func (c *Cursor[V]) Next() {
	if c.i++; c.i == len(c.m.blocks[c.n].keys) {
		c.n, c.i = c.n+1, 0
	}
}

func (m *Map[V]) end() Cursor[V] { return Cursor[V]{m, len(m.blocks), 0} }

// block finds the block that holds key or would hold it; there is at least
// one block.
func (m *Map[V]) block(key string) int {
	n := sort.Search(len(m.firsts), func(i int) bool { return m.firsts[i] > key })
	return max(n-1, 0)
}

// near is block for a writer whose keys come in order.
func (m *Map[V]) near(key string) int {
	n := m.last
	if n >= len(m.firsts) || key < m.firsts[n] || n+1 < len(m.firsts) && key >= m.firsts[n+1] {
		n = m.block(key)
	}
	m.last = n
	return n
}

// split halves block n. A block that grew at its end (keys that come in
// order) leaves nearly all behind, so that ordered filling packs well.
func (m *Map[V]) split(n int) {
	b := m.blocks[n]
	at := len(b.keys) / 2
	if n == len(m.blocks)-1 {
		at = len(b.keys) * 7 / 8
	}
	right := &block[V]{
		keys:   append(make([]string, 0, maxBlock+1), b.keys[at:]...),
		vals:   append(make([]V, 0, maxBlock+1), b.vals[at:]...),
		nums:   append(make([]uint64, 0, maxBlock+1), b.nums[at:]...),
		common: b.common,
	}
	clear(b.keys[at:])
	clear(b.vals[at:])
	b.keys, b.vals, b.nums = b.keys[:at], b.vals[:at], b.nums[:at]
	b.sharpen()
	right.sharpen()
	m.blocks = slices.Insert(m.blocks, n+1, right)
	m.firsts = slices.Insert(m.firsts, n+1, right.keys[0])
}

// cut removes entries [i, j) of block n; the block may become empty.
func (m *Map[V]) cut(n, i, j int) {
	b := m.blocks[n]
	b.keys = slices.Delete(b.keys, i, j)
	b.vals = slices.Delete(b.vals, i, j)
	b.nums = slices.Delete(b.nums, i, j)
	m.size -= j - i
	if len(b.keys) > 0 {
		m.firsts[n] = b.keys[0]
	}
}

// drop removes blocks [i, j) with what is left in them.
func (m *Map[V]) drop(i, j int) {
	for _, b := range m.blocks[i:j] {
		m.size -= len(b.keys)
	}
	m.blocks = slices.Delete(m.blocks, i, j)
	m.firsts = slices.Delete(m.firsts, i, j)
}

// tidy restores the shape around block n after a cut: no empty block, no two
// small neighbours.
func (m *Map[V]) tidy(n int) {
	for k := min(n+1, len(m.blocks)-1); k >= max(n-1, 0); k-- {
		switch {
		case len(m.blocks[k].keys) == 0:
			m.drop(k, k+1)
		case k+1 < len(m.blocks) && m.joinable(k):
			l, r := m.blocks[k], m.blocks[k+1]
			l.keys = append(l.keys, r.keys...)
			l.vals = append(l.vals, r.vals...)
			l.number(CommonPrefix(l.keys[0], l.keys[len(l.keys)-1]))
			r.keys, r.vals = nil, nil
			m.drop(k+1, k+2)
		}
	}
}

func (m *Map[V]) joinable(k int) bool {
	l, r := len(m.blocks[k].keys), len(m.blocks[k+1].keys)
	return min(l, r) < minBlock && l+r <= maxBlock/2
}

// search finds the place of key in the block.
func (b *block[V]) search(key string) (at int, found bool) {
	if b.common > 0 && len(b.keys) > 0 {
		head := b.keys[0][:b.common]
		if key < head {
			return 0, false
		}
		if len(key) < b.common || key[:b.common] != head {
			return len(b.keys), false
		}
	}
	num := Number(key, b.common)
	lo, tie := slices.BinarySearch(b.nums, num)
	if !tie {
		return lo, false
	}
	hi := lo + 1
	for hi < len(b.nums) && b.nums[hi] == num {
		hi++
	}
	at, found = slices.BinarySearch(b.keys[lo:hi], key)
	return lo + at, found
}

func (b *block[V]) insert(i int, key string, v V) {
	b.keys = slices.Insert(b.keys, i, key)
	b.vals = slices.Insert(b.vals, i, v)
	if c := CommonPrefix(b.keys[0], b.keys[len(b.keys)-1]); c < b.common {
		b.number(c)
	} else {
		b.nums = slices.Insert(b.nums, i, Number(key, b.common))
	}
}

// sharpen skips more of what the keys share, where that is worth reading them
// all: they tie the less.
func (b *block[V]) sharpen() {
	if c := CommonPrefix(b.keys[0], b.keys[len(b.keys)-1]); c >= b.common+4 {
		b.number(c)
	}
}

func (b *block[V]) number(common int) {
	b.common, b.nums = common, b.nums[:0]
	for _, k := range b.keys {
		b.nums = append(b.nums, Number(k, common))
	}
}

// Number is 8 bytes of key behind the common ones, in the order of the keys;
// keys that differ further behind, or in zeros at their end, have one number.
func Number(key string, common int) (num uint64) {
	key = key[common:]
	if len(key) >= 8 {
		return binary.BigEndian.Uint64([]byte(key[:8]))
	}
	for i := range len(key) {
		num |= uint64(key[i]) << (56 - 8*i)
	}
	return num
}

// CommonPrefix is the number of bytes in which two texts agree at their beginning.
func CommonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// below says whether key is before the end of a range that ends at to.
func below(key, to string) bool { return to == "" || key < to }
