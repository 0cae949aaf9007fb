package watermark

import (
	"encoding/binary"
	"fmt"
)

// Layout of the state, version 1. Numbers are unsigned varints, times 8 bytes big
// endian, texts a length and bytes.
//
//	version 1 | W | sources | { name | partitions | { name | time } }
//
// Names are distinct at each level, every source has a partition, W may be Unset, times
// lie in [Min, Max]. A change of the layout takes the next version; decoders of older
// ones stay.
const stateVersion = 1

// stateText is a decoded state.
type stateText struct {
	w       Time
	sources []sourceText
}

type sourceText struct {
	name       string
	partitions []partitionText
}

type partitionText struct {
	name string
	time Time
}

func decodeState(b []byte) (stateText, error) {
	d := decoder{b: b}
	d.version()
	st := stateText{w: d.time(Unset)}
	names := map[string]bool{}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		src := sourceText{name: d.distinct(names)}
		inner := map[string]bool{}
		left := d.count()
		if left == 0 {
			d.fail("source %q has no partition", src.name)
		}
		for ; left > 0 && d.err == nil; left-- {
			src.partitions = append(src.partitions, partitionText{d.distinct(inner), d.time(Min)})
		}
		st.sources = append(st.sources, src)
	}
	return st, d.done()
}

// encoder appends to b.
type encoder struct{ b []byte }

func (e *encoder) count(n int)   { e.b = binary.AppendUvarint(e.b, uint64(n)) }
func (e *encoder) text(s string) { e.count(len(s)); e.b = append(e.b, s...) }
func (e *encoder) time(t Time)   { e.b = binary.BigEndian.AppendUint64(e.b, uint64(t)) }

// decoder reads from the front of b until its first error, which stays.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{ErrState}, args...)...)
	}
}

// take cuts n bytes off, nil after an error.
func (d *decoder) take(n uint64) []byte {
	if d.err == nil && n > uint64(len(d.b)) {
		d.fail("it is cut short")
	}
	if d.err != nil {
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) version() {
	if v := d.byte(); v != stateVersion {
		d.fail("version %d is unknown, this build reads version %d", v, stateVersion)
	}
}

// count refuses numbers not written in their shortest form, so that a state has one form.
func (d *decoder) count() uint64 {
	if d.err != nil {
		return 0
	}
	n, size := binary.Uvarint(d.b)
	if size <= 0 || (size > 1 && d.b[size-1] == 0) {
		d.fail("a number is cut short or not in its shortest form")
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) text() string { return string(d.take(d.count())) }

// distinct reads a text that is not in seen yet.
func (d *decoder) distinct(seen map[string]bool) string {
	s := d.text()
	if d.err == nil && seen[s] {
		d.fail("%q occurs twice", clip(s))
	}
	seen[s] = true
	return s
}

// time reads a time in [lowest, Max].
func (d *decoder) time(lowest Time) Time {
	b := d.take(8)
	if b == nil {
		return Unset
	}
	t := Time(binary.BigEndian.Uint64(b))
	if t < lowest || t > Max {
		d.fail("%s is not allowed as a time there", t)
	}
	return t
}

// done returns the first error; bytes left over are one.
func (d *decoder) done() error {
	if len(d.b) > 0 {
		d.fail("%d bytes are left over", len(d.b))
	}
	return d.err
}
