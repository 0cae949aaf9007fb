package agg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrState: bytes that are no state of this function; the record that holds
// them is damaged or of another definition.
var ErrState = errors.New("damaged aggregate state")

// Append appends v for the state: the kind, then its contents. Unlike a key it
// keeps floats and ints apart.
func (v Value) Append(b []byte) []byte {
	b = append(b, byte(v.kind))
	switch v.kind {
	case KindBool:
		return append(b, byte(v.bits))
	case KindInt:
		return binary.AppendVarint(b, int64(v.bits))
	case KindFloat:
		return binary.LittleEndian.AppendUint64(b, v.bits)
	case KindString, KindJSON:
		b = binary.AppendUvarint(b, uint64(len(v.text)))
		return append(b, v.text...)
	}
	return b
}

// DecodeValue reads what Append wrote and returns the bytes behind it. The
// value shares no memory with b. It fails with ErrState.
func DecodeValue(b []byte) (Value, []byte, error) {
	d := reader{b: b}
	v := d.value()
	return v, d.b, d.err
}

// reader takes state apart. The first error sticks, later reads give zeros, so
// that a decoder checks once, at its end.
type reader struct {
	b   []byte
	err error
}

func (d *reader) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrState, what)
	}
	d.b = nil
}

func (d *reader) byte() byte {
	if len(d.b) == 0 {
		d.fail("cut short")
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *reader) uvarint() uint64 {
	u, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("bad number")
		return 0
	}
	d.b = d.b[n:]
	return u
}

func (d *reader) varint() int64 {
	i, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail("bad number")
		return 0
	}
	d.b = d.b[n:]
	return i
}

func (d *reader) fixed32() uint32 {
	if len(d.b) < 4 {
		d.fail("cut short")
		return 0
	}
	u := binary.LittleEndian.Uint32(d.b)
	d.b = d.b[4:]
	return u
}

func (d *reader) fixed64() uint64 {
	if len(d.b) < 8 {
		d.fail("cut short")
		return 0
	}
	u := binary.LittleEndian.Uint64(d.b)
	d.b = d.b[8:]
	return u
}

// count reads a number of items that take at least size bytes each, so that a
// damaged one cannot ask for more memory than there are bytes.
func (d *reader) count(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.b)/size) {
		d.fail("more items than bytes")
		return 0
	}
	return int(n)
}

func (d *reader) text() string {
	n := d.count(1)
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *reader) value() Value {
	switch kind := Kind(d.byte()); kind {
	case KindNull:
		return Value{}
	case KindBool:
		u := d.byte()
		if u > 1 {
			d.fail("bad bool")
		}
		return Bool(u == 1)
	case KindInt:
		return Int(d.varint())
	case KindFloat:
		return Float(math.Float64frombits(d.fixed64()))
	case KindString, KindJSON:
		return Value{kind: kind, text: d.text()}
	default:
		d.fail("unknown kind of value")
		return Value{}
	}
}
