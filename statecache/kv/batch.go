package kv

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Batch is a write set in the form in which it is stored: operations one
// after the other, in the order in which they apply. The zero value is empty
// and ready. One goroutine at a time may use it; Reset keeps its memory.
type Batch struct {
	data []byte
	ops  int
}

// Put appends an assignment. The arguments are copied.
func (b *Batch) Put(key, value []byte) { b.put(nil, key, value) }

// put is Put for a key in two pieces.
func (b *Batch) put(prefix, key, value []byte) {
	b.ops++
	data := AppendUvarint(append(b.data, byte(OpPut)), uint64(len(prefix)+len(key)))
	data = append(append(data, prefix...), key...)
	b.data = AppendBlob(data, value)
}

// Delete appends the removal of [from, to), to the end where to is empty. A
// range that cannot hold a key is dropped at once.
func (b *Batch) Delete(from, to []byte) {
	switch {
	case len(to) > 0 && bytes.Compare(from, to) >= 0:
	case len(to) == len(from)+1 && to[len(from)] == 0 && bytes.HasPrefix(to, from):
		b.ops++
		b.data = append(b.data, byte(OpDeleteKey))
		b.data = AppendBlob(b.data, to)
	default:
		b.ops++
		b.data = append(b.data, byte(OpDelete))
		b.data = AppendBlob(b.data, from)
		b.data = AppendBlob(b.data, to)
	}
}

// Grow makes room for n bytes more, where the caller knows how large it gets.
func (b *Batch) Grow(n int) { b.data = slices.Grow(b.data, n) }

// Len is the number of operations.
func (b *Batch) Len() int { return b.ops }

// Size is the number of bytes that the batch takes in a log.
func (b *Batch) Size() int { return len(b.data) }

// Cap is the number of bytes for which the batch has memory.
func (b *Batch) Cap() int { return cap(b.data) }

// Bytes is the stored form, for ReadBatch. It aliases the batch: valid until
// its next change.
func (b *Batch) Bytes() []byte { return b.data }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() { b.data, b.ops = b.data[:0], 0 }

// ReadBatch replays the operations of Batch.Bytes in order. The slices alias
// data; to is empty for a delete to the end. Damage is reported (ErrCorrupt)
// with the number of the operation, after the operations before it were
// passed on: a caller that must not see half a batch checks a checksum first.
func ReadBatch(data []byte, put func(key, value []byte), del func(from, to []byte)) error {
	r := NewBatchReader(data)
	for r.Next() {
		a, b := data[r.A:r.AEnd:r.AEnd], data[r.B:r.BEnd:r.BEnd]
		if r.Op == OpPut {
			put(a, b)
		} else {
			del(a, b)
		}
	}
	return r.Err()
}

// blob reads what AppendBlob wrote.
func blob(data []byte) (v, rest []byte, ok bool) {
	n, k := binary.Uvarint(data)
	if k <= 0 || n > uint64(len(data)-k) {
		return nil, nil, false
	}
	end := k + int(n)
	return data[k:end:end], data[end:], true
}
