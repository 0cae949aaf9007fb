package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// Key parts: the byte order of the encodings is the order of the values, and
// no encoding is a prefix of another of its kind, so parts can be strung
// together and compared with bytes.Compare.
//
// Integers are big endian with the sign bit flipped. Text is terminated by
// 00 01, with 00 inside written as 00 ff (the escape of Google's orderedcode).

const signBit = 1 << 63

// AppendUint64 appends v as 8 bytes, big endian.
func AppendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

// AppendInt64 appends v as 8 bytes, negative numbers first.
func AppendInt64(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v)^signBit)
}

// AppendTime is AppendInt64 for a named integer such as an event time in
// nanoseconds, whatever its type.
func AppendTime[T ~int64](dst []byte, v T) []byte { return AppendInt64(dst, int64(v)) }

// AppendUint32 appends v as 4 bytes, big endian.
func AppendUint32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }

// AppendFloat64 appends v as 8 bytes: negative NaN, -Inf, ..., -0, 0, ...,
// +Inf, NaN. The bits come back as they were; a caller for whom -0 is 0 and
// all NaN are one makes them so before.
func AppendFloat64(dst []byte, v float64) []byte {
	u := math.Float64bits(v)
	if u&signBit != 0 {
		return binary.BigEndian.AppendUint64(dst, ^u)
	}
	return binary.BigEndian.AppendUint64(dst, u|signBit)
}

// AppendString appends text or bytes of any content, escaped and terminated.
func AppendString[T ~string | ~[]byte](dst []byte, v T) []byte {
	for i := 0; i < len(v); i++ {
		if c := v[i]; c == 0 {
			dst = append(dst, 0, 0xff)
		} else {
			dst = append(dst, c)
		}
	}
	return append(dst, 0, 1)
}

// Uint64 reads AppendUint64 and returns the rest of the key.
func Uint64(key []byte) (v uint64, rest []byte, err error) {
	if len(key) < 8 {
		return 0, nil, short("an 8 byte number", key)
	}
	return binary.BigEndian.Uint64(key), key[8:], nil
}

// Int64 reads AppendInt64 and returns the rest of the key.
func Int64(key []byte) (v int64, rest []byte, err error) {
	u, rest, err := Uint64(key)
	return int64(u ^ signBit), rest, err
}

// Time reads AppendTime and returns the rest of the key.
func Time[T ~int64](key []byte) (v T, rest []byte, err error) {
	i, rest, err := Int64(key)
	return T(i), rest, err
}

// Uint32 reads AppendUint32 and returns the rest of the key.
func Uint32(key []byte) (v uint32, rest []byte, err error) {
	if len(key) < 4 {
		return 0, nil, short("a 4 byte number", key)
	}
	return binary.BigEndian.Uint32(key), key[4:], nil
}

// Float64 reads AppendFloat64 and returns the rest of the key.
func Float64(key []byte) (v float64, rest []byte, err error) {
	u, rest, err := Uint64(key)
	if err != nil {
		return 0, nil, err
	}
	if u&signBit != 0 {
		return math.Float64frombits(u &^ signBit), rest, nil
	}
	return math.Float64frombits(^u), rest, nil
}

// String reads AppendString into a string of its own and returns the rest of
// the key.
func String(key []byte) (v string, rest []byte, err error) {
	b, rest, err := Bytes(key)
	return string(b), rest, err
}

// Bytes reads AppendString and returns the rest of the key. The value aliases
// key where nothing was escaped.
func Bytes(key []byte) (v, rest []byte, err error) {
	var unescaped []byte
	for from := 0; ; {
		i := bytes.IndexByte(key[from:], 0)
		if i < 0 || from+i+1 == len(key) {
			return nil, nil, short("the end of a text", key)
		}
		end := from + i
		switch key[end+1] {
		case 1:
			rest = key[end+2:]
			if unescaped == nil {
				return key[:end:end], rest, nil
			}
			return append(unescaped, key[from:end]...), rest, nil
		case 0xff:
			unescaped = append(append(unescaped, key[from:end]...), 0)
			from = end + 2
		default:
			return nil, nil, fmt.Errorf("an escape 00 %02x in a text of a key: %w", key[end+1], ErrCorrupt)
		}
	}
}

func short(what string, key []byte) error {
	return fmt.Errorf("a key ends before %s (%d bytes left): %w", what, len(key), ErrCorrupt)
}
