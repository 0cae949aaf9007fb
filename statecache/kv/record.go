package kv

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Castagnoli is the polynomial of every checksum here: CRC32C, which the
// common processors compute in hardware.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

const recordOverhead = 1 + 4 // version byte, CRC32C

// AppendRecord appends payload framed as a record: a version byte, the
// payload, and the CRC32C of both in little endian.
func AppendRecord(dst []byte, version byte, payload []byte) []byte {
	start := len(dst)
	dst = append(dst, version)
	dst = append(dst, payload...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], Castagnoli))
}

// Record checks and opens what AppendRecord wrote. The payload aliases data.
// The error wraps ErrCorrupt; the caller adds which record it was.
func Record(data []byte) (version byte, payload []byte, err error) {
	if len(data) < recordOverhead {
		return 0, nil, fmt.Errorf("a record of %d bytes, at least %d expected: %w", len(data), recordOverhead, ErrCorrupt)
	}
	end := len(data) - 4
	if want, got := binary.LittleEndian.Uint32(data[end:]), crc32.Checksum(data[:end], Castagnoli); want != got {
		return 0, nil, fmt.Errorf("checksum %08x of a record of %d bytes, %08x expected: %w", got, len(data), want, ErrCorrupt)
	}
	return data[0], data[1:end:end], nil
}
