package kv

import (
	"encoding/binary"
	"fmt"
)

// Op says what an operation of a stored batch does.
type Op byte

// The operations of a batch. The numbers are on disk: never reuse one.
const (
	OpPut       Op = 1 // key, value
	OpDelete    Op = 2 // from, to; an empty to means to the end
	OpDeleteKey Op = 3 // key followed by a zero byte: [key, key 00), aliased as both bounds
)

// BatchReader steps through the operations of Batch.Bytes in the order in which
// they apply, and says where in the bytes their parts are: for an index that keeps
// places instead of slices.
type BatchReader struct {
	Op      Op  // of the operation after a Next that was true
	A, AEnd int // its key, or the from of a range
	B, BEnd int // its value, or the to of a range
	data    []byte
	at, n   int
	err     error
}

// NewBatchReader reads data from its beginning.
func NewBatchReader(data []byte) BatchReader { return BatchReader{data: data} }

// Next moves to the next operation; false at the end and after damage.
func (r *BatchReader) Next() bool {
	if r.at == len(r.data) || r.err != nil {
		return false
	}
	r.Op = Op(r.data[r.at])
	ok := r.blob(r.at+1, &r.A, &r.AEnd)
	switch {
	case !ok:
		return r.fail("is cut short")
	case r.Op == OpDeleteKey:
		if r.AEnd == r.A || r.data[r.AEnd-1] != 0 {
			return r.fail("deletes a key without its end mark")
		}
		r.B, r.BEnd = r.A, r.AEnd
		r.AEnd--
	case r.Op != OpPut && r.Op != OpDelete:
		return r.fail(fmt.Sprintf("has the unknown type %d", r.Op))
	case !r.blob(r.AEnd, &r.B, &r.BEnd):
		return r.fail("is cut short")
	}
	r.at = r.BEnd
	r.n++
	return true
}

// Err says what was wrong with the bytes, with the number of the operation; it wraps
// ErrCorrupt. The operations before it were passed on.
func (r *BatchReader) Err() error { return r.err }

func (r *BatchReader) fail(why string) bool {
	r.err = fmt.Errorf("operation %d of the batch %s: %w", r.n, why, ErrCorrupt)
	return false
}

// blob finds what AppendBlob wrote at a place.
func (r *BatchReader) blob(at int, from, to *int) bool {
	if at >= len(r.data) {
		return false
	}
	n, k := uint64(r.data[at]), 1
	if n >= 0x80 {
		n, k = binary.Uvarint(r.data[at:])
	}
	if at += k; k <= 0 || n > uint64(len(r.data)-at) {
		return false
	}
	*from, *to = at, at+int(n)
	return true
}
