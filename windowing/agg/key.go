package agg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// ErrKey: bytes that AppendKey did not write.
var ErrKey = errors.New("damaged key")

// First bytes of a key. The layout follows FoundationDB's tuple layer: an
// integer of n bytes has the tag keyZero+n, a negative one keyZero-n and the
// bytes of the one's complement, so that small numbers take two bytes and order
// is that of the bytes. After an integer stands a mark: numbers that are no
// integers are written as their whole part, towards zero, and the exact rest.
const (
	keyNull  = 0x01
	keyFalse = 0x02
	keyTrue  = 0x03
	keyNaN   = 0x05
	keyLow   = 0x06 // floats below int64, with -Inf
	keyZero  = 0x14 // 0x0c to 0x1c
	keyHigh  = 0x20 // floats from 2^63 on, with +Inf
	keyText  = 0x30
	keyJSON  = 0x40

	markBelow = 0x01 // a negative rest follows, as 8 bytes
	markWhole = 0x02
	markAbove = 0x03 // a positive rest follows, as 8 bytes

	textEscape = 0x00 // 0 inside a text is 00 ff, its end is 00 01
	textZero   = 0xff
	textEnd    = 0x01
)

// AppendKey appends the key of v: equal values have equal bytes (1 and 1.0, -0
// and 0, objects with their keys in another order), different values different
// bytes, no key is the beginning of another, and the order of the bytes is that
// of Compare. Keys of several values may thus be appended one after the other.
func (v Value) AppendKey(b []byte) []byte {
	switch v.kind {
	case KindBool:
		return append(b, keyFalse+byte(v.bits))
	case KindInt:
		return append(appendKeyInt(b, int64(v.bits)), markWhole)
	case KindFloat:
		return appendKeyFloat(b, math.Float64frombits(v.bits))
	case KindString:
		return appendKeyText(append(b, keyText), v.text)
	case KindJSON:
		return appendKeyText(append(b, keyJSON), v.text)
	}
	return append(b, keyNull)
}

func appendKeyInt(b []byte, i int64) []byte {
	n, digits := keyIntSize(i), uint64(i)
	if i < 0 {
		digits = ^-digits
	}
	b = append(b, byte(keyZero+n))
	for shift := 8 * (max(n, -n) - 1); shift >= 0; shift -= 8 {
		b = append(b, byte(digits>>shift))
	}
	return b
}

// keyIntSize is the number of bytes of |i|, negative where i is.
func keyIntSize(i int64) int {
	if i < 0 {
		return -(bits.Len64(-uint64(i)) + 7) / 8
	}
	return (bits.Len64(uint64(i)) + 7) / 8
}

func appendKeyFloat(b []byte, f float64) []byte {
	switch {
	case f != f:
		return append(b, keyNaN)
	case f < -1<<63:
		return appendOrdered(append(b, keyLow), f)
	case f >= 1<<63:
		return appendOrdered(append(b, keyHigh), f)
	}
	whole, rest := math.Modf(f)
	b = appendKeyInt(b, int64(whole))
	switch {
	case rest < 0:
		return appendOrdered(append(b, markBelow), rest)
	case rest > 0:
		return appendOrdered(append(b, markAbove), rest)
	}
	return append(b, markWhole)
}

// appendOrdered writes a float so that its bytes sort as the numbers do.
func appendOrdered(b []byte, f float64) []byte {
	u := math.Float64bits(f)
	if u>>63 != 0 {
		u = ^u
	} else {
		u |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(b, u)
}

func appendKeyText(b []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, textEscape)
		if i < 0 {
			return append(append(b, s...), textEscape, textEnd)
		}
		b = append(append(b, s[:i]...), textEscape, textZero)
		s = s[i+1:]
	}
}

// DecodeKey reads one key and returns what follows it. Numbers come back in
// their canonical form. It fails with ErrKey on bytes that AppendKey does not
// write.
func DecodeKey(b []byte) (v Value, rest []byte, err error) {
	if len(b) == 0 {
		return Value{}, nil, fmt.Errorf("%w: no bytes", ErrKey)
	}
	tag, rest := b[0], b[1:]
	switch {
	case tag == keyNull:
		return Null(), rest, nil
	case tag == keyFalse || tag == keyTrue:
		return Bool(tag == keyTrue), rest, nil
	case tag == keyNaN:
		return Float(math.NaN()), rest, nil
	case tag == keyText || tag == keyJSON:
		return decodeKeyText(tag, rest)
	case tag == keyLow || tag == keyHigh:
		return decodeKeyLarge(tag, rest)
	case tag >= keyZero-8 && tag <= keyZero+8:
		return decodeKeyNumber(int(tag)-keyZero, rest)
	}
	return Value{}, nil, fmt.Errorf("%w: unknown first byte 0x%02x", ErrKey, tag)
}

func decodeKeyText(tag byte, b []byte) (Value, []byte, error) {
	var text []byte
	for {
		i := bytes.IndexByte(b, textEscape)
		if i < 0 || i+1 == len(b) {
			return Value{}, nil, fmt.Errorf("%w: text without an end", ErrKey)
		}
		mark := b[i+1]
		text = append(text, b[:i]...)
		b = b[i+2:]
		switch mark {
		case textZero:
			text = append(text, textEscape)
		case textEnd:
			v := String(string(text))
			if tag == keyJSON {
				v.kind = KindJSON
			}
			return v, b, nil
		default:
			return Value{}, nil, fmt.Errorf("%w: bad escape in a text", ErrKey)
		}
	}
}

func decodeOrdered(b []byte) (float64, []byte, error) {
	if len(b) < 8 {
		return 0, nil, fmt.Errorf("%w: number cut short", ErrKey)
	}
	u := binary.BigEndian.Uint64(b)
	if u>>63 != 0 {
		u &^= 1 << 63
	} else {
		u = ^u
	}
	return math.Float64frombits(u), b[8:], nil
}

func decodeKeyLarge(tag byte, b []byte) (Value, []byte, error) {
	f, rest, err := decodeOrdered(b)
	if err != nil {
		return Value{}, nil, err
	}
	if (tag == keyLow && f < -1<<63) || (tag == keyHigh && f >= 1<<63) {
		return Float(f), rest, nil
	}
	return Value{}, nil, fmt.Errorf("%w: %v under the tag of large numbers", ErrKey, f)
}

// decodeKeyNumber reads the integer of |n| bytes, negative for n < 0, its mark
// and the rest behind a mark.
func decodeKeyNumber(n int, b []byte) (Value, []byte, error) {
	size := max(n, -n)
	if len(b) < size+1 {
		return Value{}, nil, fmt.Errorf("%w: number cut short", ErrKey)
	}
	var u uint64
	for _, c := range b[:size] {
		u = u<<8 | uint64(c)
	}
	if n < 0 {
		if size < 8 {
			u |= math.MaxUint64 << (8 * size)
		}
		u = -^u
	}
	whole, mark, b := int64(u), b[size], b[size+1:]
	if keyIntSize(whole) != n {
		return Value{}, nil, fmt.Errorf("%w: integer not in its shortest form", ErrKey)
	}
	if mark == markWhole {
		return Int(whole), b, nil
	}
	f, rest, err := decodeOrdered(b)
	if err != nil {
		return Value{}, nil, err
	}
	v := Float(float64(whole) + f)
	back, part := math.Modf(v.AsFloat())
	if (mark == markBelow && f < 0 || mark == markAbove && f > 0) && part == f && int64(back) == whole {
		return v, rest, nil
	}
	return Value{}, nil, fmt.Errorf("%w: whole part and rest do not fit", ErrKey)
}
