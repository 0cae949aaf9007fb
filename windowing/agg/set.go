package agg

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// set holds different values, in canonical form, up to the limits of its call.
// Past them it keeps nothing but the fact, and its result is an error: the
// answer is the same in every order, and memory is bounded.
type set struct {
	call  *Call
	small []Value            // up to smallSet values
	large map[Value]struct{} // all values, once there are more
	fresh []Value            // since Saved, where the owner calls it
	bytes int64              // of texts
	track bool               // Saved was called
	over  bool
}

const smallSet = 8

// add takes a value unless it is null or there already.
func (s *set) add(v Value) {
	if v.IsNull() || s.over {
		return
	}
	if v = v.Canonical(); s.has(v) {
		return
	}
	s.bytes += int64(len(v.text))
	if s.call.exceeds(int64(s.len()+1), s.bytes) {
		s.drop()
		return
	}
	v = v.Clone()
	s.insert(v)
	if s.track {
		s.fresh = append(s.fresh, v)
	}
}

func (s *set) insert(v Value) {
	if s.large == nil && len(s.small) < smallSet {
		s.small = append(s.small, v)
		return
	}
	if s.large == nil {
		s.large = make(map[Value]struct{}, 2*smallSet)
		for _, w := range s.small {
			s.large[w] = struct{}{}
		}
		s.small = nil
	}
	s.large[v] = struct{}{}
}

func (s *set) has(v Value) bool {
	if s.large == nil {
		return slices.Contains(s.small, v)
	}
	_, ok := s.large[v]
	return ok
}

func (s *set) len() int { return len(s.small) + len(s.large) }

// drop lets go of everything, for good.
func (s *set) drop() { *s = set{call: s.call, track: s.track, over: true} }

func (s *set) merge(o *set) {
	if o.over {
		s.drop()
	}
	for _, v := range o.small {
		s.add(v)
	}
	for v := range o.large {
		s.add(v)
	}
}

// sorted is all values in the order of Compare.
func (s *set) sorted() []Value {
	values := slices.Clone(s.small)
	values = slices.Grow(values, len(s.large))
	for v := range s.large {
		values = append(values, v)
	}
	slices.SortFunc(values, Value.Compare)
	return values
}

func (s *set) Append(b []byte) []byte { return appendSet(b, s.over, s.sorted()) }

func (s *set) AppendNew(b []byte) []byte {
	if !s.track {
		return s.Append(b)
	}
	return appendSet(b, s.over, s.fresh)
}

func (s *set) Saved() { s.track, s.fresh = true, nil }

func appendSet(b []byte, over bool, values []Value) []byte {
	if over {
		return append(b, 1)
	}
	b = binary.AppendUvarint(append(b, 0), uint64(len(values)))
	for _, v := range values {
		b = v.Append(b)
	}
	return b
}

func (s *set) decode(d *reader) {
	if s.over = d.overLimit(); s.over {
		return
	}
	for range d.count(1) {
		if v := d.value(); v.IsNull() || !v.IsFinite() {
			d.fail("no value of a set")
		} else {
			s.add(v)
		}
	}
}

// overLimit reads the first byte of a state with a limit.
func (d *reader) overLimit() bool {
	c := d.byte()
	if c > 1 {
		d.fail("unknown form of a list")
	}
	return c == 1
}

// exceeds tells whether n values with so many bytes of text are too much.
func (c *Call) exceeds(n, bytes int64) bool { return n > c.limit || bytes > c.limitBytes }

// tooMuch is the result past a limit.
func (c *Call) tooMuch(what, remedy string) (Value, error) {
	text := fmt.Sprintf("more than %d %s in one group and window (option limit)", c.limit, what)
	if c.limitBytes > 0 {
		text += fmt.Sprintf(" or more than %d bytes of text (option limit_bytes)", c.limitBytes)
	}
	return Value{}, fmt.Errorf("%w: %.100s has %s, and let them go; %s", ErrLimit, c.Text, text, remedy)
}
