package statecache

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// index finds the newest operation on a key in the batches of a generation, and
// knows nothing of the order of keys: what is written again and again, or deleted
// soon, is never put in order. It holds places in the batches and no pointers, so
// that the garbage collector has nothing to look at.
//
// Operations have a rank, the place in which they apply. An entry counts unless a
// deleted range of a higher rank holds its key.
//
// The Commit that changes it may read it without the lock.
type index struct {
	mu      sync.RWMutex // protects what follows, for reads during a Commit
	batches [][]byte
	slots   []uint64 // hash of a key, number of its entry + 1; 0 is free
	entries []indexed
	deleted spans
}

// indexed is the newest put or delete of one key.
type indexed struct {
	hash  uint32
	batch uint32
	at    uint32 // where the key is in the batch; its value is behind it
	size  uint32 // bytes of the key, and whether it is deleted
}

const (
	entryGone = 1 << 31
	// maxBatch keeps places within a batch below entryGone.
	maxBatch = math.MaxInt32
)

func (e *indexed) gone() bool   { return e.size&entryGone != 0 }
func (e *indexed) rank() uint64 { return uint64(e.batch)<<32 | uint64(e.at) }

// seed is of the process: nothing of a hash is on disk.
var seed = maphash.MakeSeed()

func hashOf(key []byte) uint32 { return uint32(maphash.Bytes(seed, key) >> 32) }

// block is how many operations are taken at once: their slots and keys are fetched
// side by side, where one after the other would wait for memory each time.
const block = 64

// apply takes up the operations of a batch, which must not change any more. The
// caller holds the lock where reads may overlap.
func (x *index) apply(batch []byte) error {
	x.batches = append(x.batches, batch)
	number := uint32(len(x.batches) - 1)
	x.reserve(len(batch) / (2 * putBytes))
	var some [block]indexed
	n := 0
	r := kv.NewBatchReader(batch)
	for r.Next() {
		if r.Op == kv.OpDelete {
			x.deleted.add(text(batch[r.A:r.AEnd]), text(batch[r.B:r.BEnd]), uint64(number)<<32|uint64(r.A))
			continue
		}
		size := uint32(r.AEnd - r.A)
		if r.Op == kv.OpDeleteKey {
			size |= entryGone
		}
		some[n] = indexed{hash: hashOf(batch[r.A:r.AEnd]), batch: number, at: uint32(r.A), size: size}
		if n++; n == block {
			x.enter(some[:n])
			n = 0
		}
	}
	x.enter(some[:n])
	return r.Err()
}

// enter takes up entries in the order in which they apply.
func (x *index) enter(some []indexed) {
	if len(x.entries)+len(some) > x.room() {
		x.reserve(max(len(some), len(x.entries)/2))
	}
	x.fetch(some)
	shift, mask := x.shift(), uint32(len(x.slots)-1)
	for i := range some {
		e := &some[i]
		at := e.hash >> shift
		for ; ; at = (at + 1) & mask {
			slot := x.slots[at]
			if slot == 0 {
				x.entries = append(x.entries, *e)
				x.slots[at] = uint64(e.hash)<<32 | uint64(len(x.entries))
				break
			}
			if uint32(slot>>32) != e.hash {
				continue
			}
			if old := &x.entries[uint32(slot)-1]; text(x.key(old)) == text(x.key(e)) {
				*old = *e
				break
			}
		}
	}
}

// fetch looks where the keys of entries will be looked for, for the cache's sake
// alone: the loads do not depend on each other.
func (x *index) fetch(some []indexed) (sum byte) {
	if len(x.slots) == 0 {
		return 0
	}
	shift := x.shift()
	for i := range some {
		hash := some[i].hash
		if slot := x.slots[hash>>shift]; uint32(slot>>32) == hash && slot != 0 {
			e := &x.entries[uint32(slot)-1]
			sum += x.batches[e.batch][e.at-1]
		}
	}
	return sum
}

// find returns the entry of a key, nil where there is none.
func (x *index) find(hash uint32, key []byte) *indexed {
	if len(x.slots) == 0 {
		return nil
	}
	mask := uint32(len(x.slots) - 1)
	for at := hash >> x.shift(); ; at = (at + 1) & mask {
		slot := x.slots[at]
		if slot == 0 {
			return nil
		}
		if uint32(slot>>32) == hash {
			if e := &x.entries[uint32(slot)-1]; text(x.key(e)) == text(key) {
				return e
			}
		}
	}
}

// decides says whether the layers below do not matter for a key.
func (x *index) decides(hash uint32, key []byte) bool {
	return x.find(hash, key) != nil || x.deleted.hold(text(key))
}

// get returns the value of a key, nil where it is deleted; found says that the
// layers below do not matter. The value is a span of a batch.
func (x *index) get(key []byte) (value []byte, found bool) {
	e := x.find(hashOf(key), key)
	_, rank, deleted := x.deleted.covers(text(key))
	if e == nil || deleted && rank > e.rank() || e.gone() {
		return nil, e != nil || deleted
	}
	return x.value(e), true
}

// get is the index's get for a read that may overlap a Commit; the value is a copy,
// and one that is there is not nil.
func (g *generation) get(key []byte) (value []byte, found bool) {
	g.index.mu.RLock()
	defer g.index.mu.RUnlock()
	if value, found = g.index.get(key); value != nil {
		value = clone(value)
	}
	return value, found
}

func (x *index) key(e *indexed) []byte {
	return x.batches[e.batch][e.at : e.at+e.size&^entryGone]
}

func (x *index) value(e *indexed) []byte {
	b := x.batches[e.batch][e.at+e.size:]
	n, k := binary.Uvarint(b)
	return b[k : k+int(n) : k+int(n)]
}

// room is how many entries the slots are for: at most 5 of 8 are taken.
func (x *index) room() int { return len(x.slots) / 8 * 5 }

func (x *index) shift() int { return 32 - bits.TrailingZeros(uint(len(x.slots))) }

// leastSlots is how small an index begins.
const leastSlots = 64

// reserve makes room for n entries more.
func (x *index) reserve(n int) {
	size := max(len(x.slots), leastSlots)
	for size/8*5 < len(x.entries)+n {
		size *= 2
	}
	if size == len(x.slots) {
		return
	}
	old := x.slots
	x.slots = make([]uint64, size)
	shift, mask := x.shift(), uint32(size-1)
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		at := uint32(slot>>32) >> shift
		for x.slots[at] != 0 {
			at = (at + 1) & mask
		}
		x.slots[at] = slot
	}
}

// count is the number of keys and ranges that the index knows.
func (x *index) count() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.entries) + x.deleted.m.Len()
}
