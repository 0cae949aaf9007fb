package statecache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// bbolt takes keys of 1 to 32768 bytes; ours have any length. A stored key is
// a lead byte and the key; from longKey bytes on, the lead byte, the first
// longKey bytes and the SHA-256 of the whole key, and the whole key stands in
// the record. Stored keys sort as the keys do, except that long keys that
// agree in their first longKey bytes (a run) sort by hash among themselves:
// whoever walks sorts a run once more.
const (
	longKey    = 32000
	leadByte   = 'k'
	storedLong = 1 + longKey + sha256.Size
)

// Records of the base and of the cache. The checksum covers the stored key, so
// that a record under a wrong key is seen.
const (
	recordPlain = 1 // the value
	recordLong  = 2 // the whole key behind its length, then the value
	recordTail  = 4 // CRC32C of stored key, version, payload; little endian
)

// appendStored appends the stored form of key.
func appendStored(dst, key []byte) []byte {
	dst = append(dst, leadByte)
	if len(key) < longKey {
		return append(dst, key...)
	}
	sum := sha256.Sum256(key)
	return append(append(dst, key[:longKey]...), sum[:]...)
}

// storedFloor is the smallest stored key that a key >= from can have.
func storedFloor(from []byte) []byte {
	return append([]byte{leadByte}, from[:min(len(from), longKey)]...)
}

// runOf is what the stored keys of a run have in common; nil for a key that is
// not long.
func runOf(stored []byte) []byte {
	if len(stored) < storedLong {
		return nil
	}
	return stored[:1+longKey]
}

// appendEntry appends the record of value under key, whose stored form is
// given.
func appendEntry(dst, stored, key, value []byte) []byte {
	start := len(dst)
	if len(stored) < storedLong {
		dst = append(dst, recordPlain)
	} else {
		dst = kv.AppendBlob(append(dst, recordLong), key)
	}
	dst = append(dst, value...)
	sum := crc32.Update(crc32.Checksum(stored, kv.Castagnoli), kv.Castagnoli, dst[start:])
	return binary.LittleEndian.AppendUint32(dst, sum)
}

// openEntry checks a record and returns the whole key and the value; both
// alias the arguments. The error wraps kv.ErrCorrupt.
func openEntry(stored, record []byte) (key, value []byte, err error) {
	end := len(record) - recordTail
	if end < 1 || len(stored) < 1 || stored[0] != leadByte {
		return nil, nil, fmt.Errorf("a record of %d bytes under a key of %d: %w", len(record), len(stored), kv.ErrCorrupt)
	}
	sum := crc32.Update(crc32.Checksum(stored, kv.Castagnoli), kv.Castagnoli, record[:end])
	if want := binary.LittleEndian.Uint32(record[end:]); sum != want {
		return nil, nil, fmt.Errorf("checksum %08x of the record of key %.40q, %08x expected: %w", sum, stored[1:], want, kv.ErrCorrupt)
	}
	payload := record[1:end:end]
	switch {
	case record[0] == recordPlain && len(stored) < storedLong:
		return stored[1:], payload, nil
	case record[0] == recordLong && len(stored) == storedLong:
		d := kv.NewDecoder(payload)
		key, value = d.Bytes(), d.Rest()
		if d.Err() == nil && len(key) >= longKey && bytes.Equal(key[:longKey], stored[1:1+longKey]) {
			return key, value, nil
		}
	}
	return nil, nil, fmt.Errorf("a record of type %d under a key of %d bytes (%v): %w", record[0], len(stored), err, kv.ErrCorrupt)
}
