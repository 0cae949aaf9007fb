package host

import (
	"hash/crc32"
	"slices"
)

const (
	firstPrints = 64  // positions of a partition whose fingerprints are kept for ever
	blockSize   = 256 // offsets in a block of fingerprints

	// How far below the newest a redelivery can be checked: a source that commits its
	// own progress every few seconds comes back with everything since, as much as
	// there was in one of our commits at least. All partitions share these blocks,
	// 8.4 million positions in 32 MiB.
	blockLimit = 32768
	leastKept  = 16 // blocks of a partition, however many there are
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Fingerprint is the hash of a payload that positions are compared by. It is
// never 0.
func Fingerprint(payload []byte) uint32 {
	return max(crc32.Checksum(payload, castagnoli), 1)
}

// prints are the fingerprints of a partition: of its first positions, and of the
// newest blocks of offsets.
type prints struct {
	first  map[int64]uint32
	blocks map[int64]*printBlock // by offset / blockSize, rounded down
	order  []int64               // of the blocks, ascending
	hot    *printBlock           // of the last look-up
	floor  int64                 // offsets below it were forgotten, but for the first
	dirty  []*printBlock
	gone   []int64
	newly  bool // first has changed
}

// printBlock holds the fingerprints of blockSize offsets, 0 where none is known.
type printBlock struct {
	index int64
	hash  [blockSize]uint32
	dirty bool
}

func newPrints() prints {
	return prints{first: map[int64]uint32{}, blocks: map[int64]*printBlock{}, floor: noOffset}
}

// split gives block and slot of an offset.
func split(off int64) (index, slot int64) {
	index = off / blockSize
	slot = off % blockSize
	if slot < 0 {
		index, slot = index-1, slot+blockSize
	}
	return index, slot
}

func (p *prints) put(off int64, hash uint32) {
	if len(p.first) < firstPrints {
		p.first[off] = hash
		p.newly = true
	}
	index, slot := split(off)
	b := p.block(index)
	b.hash[slot] = hash
	if !b.dirty {
		b.dirty = true
		p.dirty = append(p.dirty, b)
	}
}

// block gives a block for writing.
func (p *prints) block(index int64) *printBlock {
	if p.hot != nil && p.hot.index == index {
		return p.hot
	}
	b := p.blocks[index]
	if b == nil {
		b = &printBlock{index: index}
		p.insert(b)
	}
	p.hot = b
	return b
}

func (p *prints) insert(b *printBlock) {
	p.blocks[b.index] = b
	i, _ := slices.BinarySearch(p.order, b.index)
	p.order = slices.Insert(p.order, i, b.index)
}

// forget drops the block of the smallest offsets.
func (p *prints) forget() {
	old := p.order[0]
	p.order = p.order[1:]
	p.floor = max(p.floor, (old+1)*blockSize)
	if p.hot == p.blocks[old] {
		p.hot = nil
	}
	delete(p.blocks, old)
	p.gone = append(p.gone, old)
}

// get gives the fingerprint of an offset, where it is known.
func (p *prints) get(off int64) (hash uint32, ok bool) {
	if hash, ok = p.first[off]; ok {
		return hash, true
	}
	index, slot := split(off)
	b := p.hot
	if b == nil || b.index != index {
		b = p.blocks[index]
	}
	if b == nil || b.hash[slot] == 0 {
		return 0, false
	}
	return b.hash[slot], true
}

// forgot says that nothing is known of an offset any more.
func (p *prints) forgot(off int64) bool { return off < p.floor }
