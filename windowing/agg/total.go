package agg

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
)

// total is the exact sum of any numbers: integers in 128 bits, floats in fixed
// point, or beyond it where they do not fit. It is the same for every order and cut.
type total struct {
	n      int64 // numbers added
	hi     int64 // the integers: hi * 2^64 + lo
	lo     uint64
	near   fixed
	far    *exact // nil: all floats are in near
	floats bool   // there are some
}

// add takes a number and ignores null.
func (t *total) add(v Value) {
	switch v.kind {
	case KindInt:
		t.n++
		var c uint64
		t.lo, c = bits.Add64(t.lo, v.bits, 0)
		t.hi += int64(v.bits)>>63 + int64(c)
	case KindFloat:
		t.n++
		t.floats = true
		if f := math.Float64frombits(v.bits); !t.near.add(f) {
			t.beyond().addFloat(f)
		}
	}
}

// beyond gives the sum of the floats that are not in near.
func (t *total) beyond() *exact {
	if t.far == nil {
		t.far = &exact{}
	}
	return t.far
}

// gather gives the sum of all floats as an exact.
func (t *total) gather() *exact {
	t.beyond().addFixed(t.near)
	t.near = fixed{}
	return t.far
}

func (t *total) merge(o *total) {
	t.n += o.n
	var c uint64
	t.lo, c = bits.Add64(t.lo, o.lo, 0)
	t.hi += o.hi + int64(c)
	t.floats = t.floats || o.floats
	if !t.near.merge(o.near) {
		t.beyond().addFixed(o.near)
	}
	if o.far != nil {
		t.beyond().merge(o.far)
	}
}

// Bits of the first byte of a total.
const (
	totalWide   = 1 // the integers need 128 bits
	totalFloats = 2
)

func (t *total) append(b []byte) []byte {
	var flags byte
	if !t.narrow() {
		flags |= totalWide
	}
	if t.floats {
		flags |= totalFloats
	}
	b = binary.AppendVarint(append(b, flags), t.n)
	if flags&totalWide != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(t.hi))
		b = binary.LittleEndian.AppendUint64(b, t.lo)
	} else {
		b = binary.AppendVarint(b, int64(t.lo))
	}
	switch {
	case !t.floats:
		return b
	case t.far == nil:
		return t.near.append(b)
	}
	return t.gather().append(b)
}

func (t *total) decode(d *reader) {
	flags := d.byte()
	if flags > totalWide|totalFloats {
		d.fail("unknown flags of a sum")
	}
	t.n = d.varint()
	if flags&totalWide != 0 {
		t.hi = int64(d.fixed64())
		t.lo = d.fixed64()
	} else {
		i := d.varint()
		t.hi, t.lo = i>>63, uint64(i)
	}
	if flags&totalFloats != 0 {
		t.floats = true
		t.decodeFloats(d)
	}
	if t.n < 0 {
		d.fail("negative count")
	}
}

func (t *total) decodeFloats(d *reader) {
	var e exact
	e.decode(d)
	if near, ok := e.fixed(); ok {
		t.near = near
		return
	}
	t.far = &exact{base: e.base, adds: e.adds, limbs: append([]int64(nil), e.limbs...)}
}

// narrow tells whether the sum of the integers is an int64.
func (t *total) narrow() bool { return t.hi == int64(t.lo)>>63 }

// quotient is the exact sum divided by n >= 1, rounded once, to the nearest
// float64 and at a tie to the even one. An infinity means out of range.
func (t *total) quotient(n int64) float64 {
	const small = 1 << 53
	if !t.floats && t.narrow() && n <= small {
		if i := int64(t.lo); -small <= i && i <= small {
			return float64(i) / float64(n)
		}
	}
	var space [100]int64
	limbs, base := t.limbs(space[:])
	negative := limbs[len(limbs)-1] < 0
	if negative {
		for i := range limbs {
			limbs[i] = -limbs[i]
		}
		carry(limbs)
	}
	inexact := divide(limbs, uint64(n))
	f := round(limbs, base, inexact)
	if negative {
		f = -f
	}
	return f
}

// limbs puts the sum into space, normalized, with room for the fraction of a
// division below and for the sign above. limbs[0] counts units of 2^(32*base).
func (t *total) limbs(space []int64) (limbs []int64, base int) {
	const fraction, whole = 4, 5
	from, to := 0, whole
	if t.floats {
		from = fixedBase
	}
	if t.far != nil {
		from = min(from, int(t.far.base))
		to = max(to, int(t.far.base)+len(t.far.limbs)+2)
	}
	base = from - fraction
	if to-base > len(space) {
		space = make([]int64, to-base) // beyond the span of floats: only damaged state gets here
	}
	limbs = space[:to-base]
	if t.far != nil {
		copy(limbs[int(t.far.base)-base:], t.far.limbs)
	}
	if t.floats {
		for i, d := range t.near.digits() {
			limbs[fixedBase+i-base] += d
		}
	}
	for i, d := range [4]int64{int64(t.lo & limbMask), int64(t.lo >> 32), t.hi & limbMask, t.hi >> 32} {
		limbs[i-base] += d
	}
	carry(limbs)
	return limbs, base
}

// divide divides digits that are not negative by n and tells whether there is a
// remainder.
func divide(limbs []int64, n uint64) bool {
	var rest uint64
	for i := len(limbs) - 1; i >= 0 && n > 1; i-- {
		var q uint64
		q, rest = bits.Div64(rest>>32, rest<<32|uint64(limbs[i]), n)
		limbs[i] = int64(q)
	}
	return rest != 0
}

// round gives the float64 nearest to digits that are not negative; inexact says
// that the number is a little larger than its digits.
func round(limbs []int64, base int, inexact bool) float64 {
	top := len(limbs) - 1
	for top >= 0 && limbs[top] == 0 {
		top--
	}
	if top < 0 {
		return 0
	}
	var head [3]uint64
	for i := range head {
		if top >= i {
			head[i] = uint64(limbs[top-i])
		}
	}
	for i := 0; i <= top-3; i++ {
		inexact = inexact || limbs[i] != 0
	}
	s := bits.LeadingZeros32(uint32(head[0]))
	mantissa := head[0]<<(32+s) | head[1]<<s | head[2]>>(32-s)
	inexact = inexact || head[2]<<(32+s) != 0
	return roundMantissa(mantissa, 32*(base+top-1)-s, inexact)
}

// roundMantissa rounds mantissa * 2^shift, where bit 63 of the mantissa is set.
func roundMantissa(mantissa uint64, shift int, inexact bool) float64 {
	const smallest = -1074 // exponent of the last bit of the smallest floats
	drop := max(11, smallest-shift)
	if drop > 64 {
		return 0
	}
	kept, lost := mantissa>>drop, mantissa<<(64-drop)
	const half = 1 << 63
	if lost > half || lost == half && (inexact || kept&1 == 1) {
		kept++
	}
	return math.Ldexp(float64(kept), shift+drop)
}

// big is the sum as an integer times 2^shift.
func (t *total) big() (i *big.Int, shift int) {
	i = new(big.Int).Lsh(big.NewInt(t.hi), 64)
	i.Add(i, new(big.Int).SetUint64(t.lo))
	if !t.floats {
		return i, 0
	}
	f, shift := t.gather().big()
	return addShifted(i, 0, f, shift)
}

// addShifted is a * 2^as + b * 2^bs.
func addShifted(a *big.Int, as int, b *big.Int, bs int) (*big.Int, int) {
	low := min(as, bs)
	a.Lsh(a, uint(as-low))
	b.Lsh(b, uint(bs-low))
	return a.Add(a, b), low
}
