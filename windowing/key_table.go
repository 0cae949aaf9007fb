package windowing

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// keyTable numbers the groups of a slice from 0 in the order in which they
// came. What belongs to a group lies in arrays under its number: for a row of a
// known group the memory of key and accumulators is fetched side by side, where
// a map of pointers would wait for one after the other. Keys lie one behind the
// other in one piece of memory, which holds no pointers. Its zero value is ready.
//
// Numbers take 32 bits: a group needs over 100 bytes elsewhere.
type keyTable struct {
	cells []cell // open addressing with linear probing; none for few groups
	keys  []byte
	ends  []int // where each key ends
}

// cell is empty where tag is 0.
type cell struct {
	hash uint32
	tag  uint32 // the number plus 1
}

// fewKeys are looked through one by one.
const fewKeys = 8

var keySeed = maphash.MakeSeed()

// count is the number of groups.
func (t *keyTable) count() int { return len(t.ends) }

// key is the canonical key of a group. It lies in the table.
func (t *keyTable) key(number uint32) []byte {
	from, end := 0, t.ends[number]
	if number > 0 {
		from = t.ends[number-1]
	}
	return t.keys[from:end:end]
}

// place gives the number of a key; added is true where it had none. The key is
// copied.
func (t *keyTable) place(key []byte) (number uint32, added bool) {
	return t.placeHashed(key, hashKey(key))
}

// placeHashed is place for a key whose hash is known.
func (t *keyTable) placeHashed(key []byte, hash uint32) (number uint32, added bool) {
	number, at, found := t.probe(key, hash)
	if found {
		return number, false
	}
	number = t.add(key)
	if t.cells != nil {
		t.cells[at] = cell{hash: hash, tag: number + 1}
	}
	t.grow()
	return number, true
}

// find gives the number of a key that has one.
func (t *keyTable) find(key []byte) (number uint32, found bool) {
	number, _, found = t.probe(key, hashKey(key))
	return number, found
}

func hashKey(key []byte) uint32 { return uint32(maphash.Bytes(keySeed, key)) }

// guess gives a number that is most likely the one of a key that has one.
func (t *keyTable) guess(hash uint32) uint32 {
	if t.cells == nil {
		return 0
	}
	return max(t.cells[hash&uint32(len(t.cells)-1)].tag, 1) - 1
}

// end gives where the key of a guessed number ends, 0 where there is none.
func (t *keyTable) end(number uint32) int {
	if int(number) < len(t.ends) {
		return t.ends[number]
	}
	return 0
}

// before gives the byte before an end, to have it fetched.
func (t *keyTable) before(end int) byte {
	if end == 0 {
		return 0
	}
	return t.keys[end-1]
}

// probe looks a key up. Where it is not found, at is the cell for it, if there are
// cells.
func (t *keyTable) probe(key []byte, hash uint32) (number, at uint32, found bool) {
	if t.cells == nil {
		for n := range t.ends {
			if bytes.Equal(t.key(uint32(n)), key) {
				return uint32(n), 0, true
			}
		}
		return 0, 0, false
	}
	mask := uint32(len(t.cells) - 1)
	for at = hash & mask; ; at = (at + 1) & mask {
		c := t.cells[at]
		switch {
		case c.tag == 0:
			return 0, at, false
		case c.hash == hash && bytes.Equal(t.key(c.tag-1), key):
			return c.tag - 1, at, true
		}
	}
}

// roomy says that the keys take but a small part of the memory for them.
func (t *keyTable) roomy() bool { return 16*t.count() < len(t.cells) }

// clear takes all keys out. Memory is used again.
func (t *keyTable) clear() {
	clear(t.cells)
	t.keys, t.ends = t.keys[:0], t.ends[:0]
}

func (t *keyTable) add(key []byte) (number uint32) {
	t.keys = append(t.keys, key...)
	t.ends = append(t.ends, len(t.keys))
	return uint32(len(t.ends) - 1)
}

// grow keeps at least half of the cells empty.
func (t *keyTable) grow() {
	n := t.count()
	if n <= fewKeys || 2*n <= len(t.cells) {
		return
	}
	cells := make([]cell, max(4*fewKeys, 2*len(t.cells)))
	mask := uint32(len(cells) - 1)
	put := func(c cell) {
		at := c.hash & mask
		for cells[at].tag != 0 {
			at = (at + 1) & mask
		}
		cells[at] = c
	}
	for _, c := range t.cells {
		if c.tag != 0 {
			put(c)
		}
	}
	if t.cells == nil {
		for i := range uint32(n) {
			put(cell{hash: hashKey(t.key(i)), tag: i + 1})
		}
	}
	t.cells = cells
}

// ranked is a group in the order of keys. Most comparisons end with the mark: 8
// bytes of the key from where the keys of the slice begin to differ.
type ranked struct {
	mark   uint64
	number uint32
}

// rank appends all groups in the ascending order of their keys.
func (t *keyTable) rank(order []ranked) []ranked {
	common := t.commonPrefix()
	for i := range uint32(t.count()) {
		order = append(order, ranked{mark: mark(t.key(i)[common:]), number: i})
	}
	slices.SortFunc(order, func(a, b ranked) int {
		if a.mark != b.mark {
			return cmp.Compare(a.mark, b.mark)
		}
		return bytes.Compare(t.key(a.number), t.key(b.number))
	})
	return order
}

// commonPrefix is the number of bytes with which all keys begin.
func (t *keyTable) commonPrefix() int {
	if t.count() == 0 {
		return 0
	}
	first := t.key(0)
	common := len(first)
	for i := 1; i < t.count() && common > 0; i++ {
		key := t.key(uint32(i))
		common = min(common, len(key))
		if !bytes.Equal(key[:common], first[:common]) {
			for common = 0; key[common] == first[common]; common++ {
			}
		}
	}
	return common
}

// mark reads up to 8 bytes; a shorter key is filled with zeros, which sort first.
func mark(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}
