package kv

import (
	"encoding/binary"
	"fmt"
)

// AppendUvarint appends v in 1 to 10 bytes, small numbers short.
func AppendUvarint(dst []byte, v uint64) []byte { return binary.AppendUvarint(dst, v) }

// AppendVarint appends v in 1 to 10 bytes, numbers near zero short.
func AppendVarint(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

// AppendBlob appends v behind its length. It does not keep order: key parts
// use AppendString.
func AppendBlob[T ~string | ~[]byte](dst []byte, v T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	return append(dst, v...)
}

// AppendBool appends one byte, 0 or 1.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// Decoder reads a payload field by field. Its first error sticks: later reads
// return zero values, so a caller reads everything and asks Done once. Values
// that Bytes returns alias the payload.
type Decoder struct {
	data []byte
	size int
	err  error
}

// NewDecoder reads data from its beginning.
func NewDecoder(data []byte) *Decoder { return &Decoder{data: data, size: len(data)} }

// Err is the first error, nil so far.
func (d *Decoder) Err() error { return d.err }

// Done ends the reading: the first error, or an error where bytes are left
// over. It wraps ErrCorrupt.
func (d *Decoder) Done() error {
	if d.err == nil && len(d.data) > 0 {
		d.Fail("%d trailing bytes", len(d.data))
	}
	return d.err
}

// Fail records an error of the caller's own (an unknown type number, a value
// out of range), unless there is one already. It wraps ErrCorrupt.
func (d *Decoder) Fail(format string, args ...any) {
	if d.err == nil {
		what := fmt.Sprintf(format, args...)
		d.err = fmt.Errorf("%s at byte %d of %d: %w", what, d.size-len(d.data), d.size, ErrCorrupt)
		d.data = nil
	}
}

// Rest returns the bytes not read yet and ends the reading without an error.
func (d *Decoder) Rest() []byte {
	rest := d.data
	d.data = nil
	return rest
}

// Len is the number of bytes not read yet.
func (d *Decoder) Len() int { return len(d.data) }

// Uvarint reads AppendUvarint.
func (d *Decoder) Uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 {
		d.Fail("no unsigned number")
		return 0
	}
	d.data = d.data[n:]
	return v
}

// Varint reads AppendVarint.
func (d *Decoder) Varint() int64 {
	v, n := binary.Varint(d.data)
	if n <= 0 {
		d.Fail("no number")
		return 0
	}
	d.data = d.data[n:]
	return v
}

// Count reads an AppendUvarint that says how many items of at least size
// bytes follow, and refuses more than can be there: damage must not make a
// caller allocate without bound. A size below 1 counts as 1.
func (d *Decoder) Count(size int) int {
	n := d.Uvarint()
	if most := uint64(len(d.data) / max(size, 1)); n > most {
		d.Fail("%d items announced, room for %d", n, most)
		return 0
	}
	return int(n)
}

// Bytes reads AppendBlob; the result aliases the payload and is nil only
// after an error.
func (d *Decoder) Bytes() []byte {
	v, rest, ok := blob(d.data)
	if !ok {
		d.Fail("a length-prefixed value is cut short")
		return nil
	}
	d.data = rest
	return v
}

// String reads AppendBlob into a string of its own.
func (d *Decoder) String() string { return string(d.Bytes()) }

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	if len(d.data) == 0 {
		d.Fail("no byte")
		return 0
	}
	v := d.data[0]
	d.data = d.data[1:]
	return v
}

// Bool reads AppendBool; anything but 0 and 1 is damage.
func (d *Decoder) Bool() bool {
	v := d.Byte()
	if v > 1 {
		d.Fail("a truth value of %d", v)
	}
	return v == 1
}

// Fixed32 reads what AppendUint32 wrote.
func (d *Decoder) Fixed32() uint32 { return part(d, Uint32) }

// Fixed64 reads AppendUint64.
func (d *Decoder) Fixed64() uint64 { return part(d, Uint64) }

// Int64 reads AppendInt64.
func (d *Decoder) Int64() int64 { return part(d, Int64) }

// Float64 reads AppendFloat64.
func (d *Decoder) Float64() float64 { return part(d, Float64) }

// part reads a key part out of a payload.
func part[T any](d *Decoder, read func([]byte) (T, []byte, error)) T {
	v, rest, err := read(d.data)
	if err != nil {
		d.Fail("no fixed-size number")
		return v
	}
	d.data = rest
	return v
}
