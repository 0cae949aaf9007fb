// Package kv is the storage seen by operators: ordered keys and values,
// written in batches that are durable as a whole or not at all.
//
// It is pure: no files, no clocks, no goroutines, no locks. A Batch is the
// write set and its bytes on disk at once (the idea of LevelDB's WriteBatch),
// so a store that logs it copies nothing. Key parts keep their order when
// encoded (key.go), records carry a version and a CRC32C (record.go), and
// payloads are read by a decoder whose first error sticks (decoder.go).
package kv

import "errors"

// ErrCorrupt is wrapped by every error that says stored bytes are not what was
// written: a wrong checksum, truncated or trailing bytes, an unknown type.
var ErrCorrupt = errors.New("stored bytes are damaged")

// Writer takes changes; a *Batch is one. Operators call it many times per
// step. The arguments stay the caller's: a Writer copies what it keeps.
type Writer interface {
	// Put sets the value of a key, whether or not it was there.
	Put(key, value []byte)
	// Delete removes every key in the half-open range [from, to). An empty or
	// nil to means to the end of all keys; a range that holds nothing is fine.
	Delete(from, to []byte)
}

// Reader reads committed state. Reads may overlap reads. Whether they may overlap
// a Commit is the store's to say.
type Reader interface {
	// Get returns the value of key, nil where it is absent (a present empty
	// value is not nil). The slice is a copy and the caller's to keep.
	Get(key []byte) ([]byte, error)
	// Scan visits the keys in [from, to) in ascending byte order; an empty or
	// nil to means to the end. The slices are valid during the visit only. An
	// error of visit ends the scan and is returned as it is. visit may write
	// to a Batch and may read, but must not Commit to the store it scans.
	Scan(from, to []byte, visit func(key, value []byte) error) error
}

// Store is a Reader that can be changed. One goroutine at a time commits. Unless a
// store says otherwise no read overlaps a Commit; goroutines that take turns must
// synchronise.
type Store interface {
	Reader
	// Commit applies a batch, all of it or nothing, and has made it durable
	// when it returns nil. After an error nothing has changed for readers and
	// the same batch, or another, may be tried again. The batch is not kept.
	Commit(*Batch) error
	// Close releases the store; every later call fails.
	Close() error
}

// After returns the smallest key that is greater than key: [key, After(key))
// holds key alone.
func After(key []byte) []byte {
	return append(append(make([]byte, 0, len(key)+1), key...), 0)
}

// PrefixEnd returns the smallest key greater than every key that begins with
// prefix, or nil where there is none (an empty prefix, or all bytes 0xff).
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
