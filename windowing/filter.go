package windowing

import (
	"hash/maphash"
	"math/bits"
)

// filter says of a key whether it may have been added: a Bloom filter whose bits
// for a key lie in one line of the processor's cache (Putze, Sanders, Singler:
// Cache-, Hash- and Space-Efficient Bloom Filters, 2007). It takes 2 bytes for each
// key and errs in about one of 300 questions after keys that are not there. One that
// gets more keys than it was made for is followed by another one of twice the size.
// Nothing can be taken out.
type filter struct {
	parts []filterPart
	room  int // keys that the last part still takes
}

type filterPart []filterBlock

type filterBlock [8]uint64

const (
	filterBits   = 16 // for each key
	filterProbes = 6  // bits that a key sets
	filterLeast  = 32 // keys that a filter is made for at least
	blockBytes   = 64
)

// hashOfKey is what a filter knows of a key. It differs from process to process.
func hashOfKey(key []byte) uint64 { return maphash.Bytes(keySeed, key) }

// empty says that nothing was added, nor room made for it.
func (f *filter) empty() bool { return len(f.parts) == 0 }

// reserve makes room for n keys more.
func (f *filter) reserve(n int) {
	if n > f.room {
		n = max(n, filterLeast)
		f.parts = append(f.parts, make(filterPart, n*filterBits/(blockBytes*8)+1))
		f.room = n
	}
}

// add takes a key in.
func (f *filter) add(hash uint64) {
	if f.room == 0 {
		n := filterLeast
		if !f.empty() {
			n = 2 * len(f.parts[len(f.parts)-1]) * blockBytes * 8 / filterBits
		}
		f.reserve(n)
	}
	f.room--
	b, mask := f.parts[len(f.parts)-1].block(hash)
	for range filterProbes {
		b[mask&7] |= 1 << (mask >> 3 & 63)
		mask >>= 9
	}
}

// has says that a key may be there. False is certain.
func (f *filter) has(hash uint64) bool {
	for i := range f.parts {
		if f.parts[i].has(hash) {
			return true
		}
	}
	return false
}

// bytes is the memory of the filter.
func (f *filter) bytes() (n int64) {
	for _, p := range f.parts {
		n += int64(len(p)) * blockBytes
	}
	return n
}

func (p filterPart) has(hash uint64) bool {
	b, mask := p.block(hash)
	for range filterProbes {
		if b[mask&7]>>(mask>>3&63)&1 == 0 {
			return false
		}
		mask >>= 9
	}
	return true
}

// block is where the bits of a key are, and which ones.
func (p filterPart) block(hash uint64) (*filterBlock, uint64) {
	at, _ := bits.Mul64(hash, uint64(len(p)))
	return &p[at], hash * 0x9e3779b97f4a7c15 >> 3
}
