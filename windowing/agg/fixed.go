package agg

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// fixed is an exact sum of floats of common sizes, such as prices and durations:
// 128 bits in two's complement that count units of 2^-fixedUnit. It lies within its
// owner, so that to add touches one place in memory. What does not fit goes into an
// exact beside it.
type fixed struct {
	hi int64
	lo uint64
}

const (
	// fixedUnit leaves 47 bits and the sign above the point. Floats from 2^-28 on
	// have all of their bits at or above the unit, some smaller ones have.
	fixedUnit = 80
	// fixedTop bounds what is added: less than 2^fixedTop units.
	fixedTop = 126
)

// add adds a float. Where the float or the sum does not fit it changes nothing and
// is not ok.
func (x *fixed) add(f float64) (ok bool) {
	u := math.Float64bits(f)
	if u<<1 == 0 {
		return true
	}
	mantissa, exponent := u&(1<<52-1)|1<<52, int(u>>52&0x7ff)
	shift := exponent - 1075 + fixedUnit
	if exponent == 0 || shift > fixedTop-53 {
		return false
	}
	return x.sum(mantissa, shift, u>>63 != 0)
}

// sum adds or subtracts mantissa * 2^shift units.
func (x *fixed) sum(mantissa uint64, shift int, negative bool) (ok bool) {
	if shift < 0 {
		if shift <= -64 || mantissa&(1<<-shift-1) != 0 {
			return false
		}
		mantissa, shift = mantissa>>-shift, 0
	}
	s := uint(shift) // of the shifts below those by more than 63 give 0
	hi, lo := int64(mantissa>>(64-s)|mantissa<<(s-64)), mantissa<<s
	var carry uint64
	if negative {
		lo, carry = bits.Sub64(0, lo, 0)
		hi = -hi - int64(carry)
	}
	lo, carry = bits.Add64(x.lo, lo, 0)
	sum := x.hi + hi + int64(carry)
	if (x.hi^sum)&(hi^sum) < 0 {
		return false
	}
	x.hi, x.lo = sum, lo
	return true
}

// merge adds another sum, if it fits.
func (x *fixed) merge(o fixed) (ok bool) {
	lo, carry := bits.Add64(x.lo, o.lo, 0)
	sum := x.hi + o.hi + int64(carry)
	if (x.hi^sum)&(o.hi^sum) < 0 {
		return false
	}
	x.hi, x.lo = sum, lo
	return true
}

// fixedBase is the base of digits, see exact.base.
const fixedBase = -3

// digits are the limbs of an exact with the base fixedBase: the last one has the
// sign.
func (x fixed) digits() [5]int64 {
	const up = -32*fixedBase - fixedUnit
	low, mid := x.lo<<up, uint64(x.hi)<<up|x.lo>>(64-up)
	return [5]int64{int64(low & limbMask), int64(low >> 32), int64(mid & limbMask), int64(mid >> 32), x.hi >> (64 - up)}
}

// append writes the sum as exact.append does, without digits that say nothing.
func (x fixed) append(b []byte) []byte {
	digits := x.digits()
	n, from := len(digits), 0
	for n > 1 && (digits[n-1] == 0 || digits[n-1] == -1 && digits[n-2] != 0) {
		digits[n-2] += digits[n-1] << 32
		n--
	}
	for from < n-1 && digits[from] == 0 {
		from++
	}
	b = binary.AppendVarint(b, int64(fixedBase+from))
	b = binary.AppendUvarint(b, uint64(n-from))
	for _, d := range digits[from : n-1] {
		b = binary.LittleEndian.AppendUint32(b, uint32(d))
	}
	return binary.AppendVarint(b, digits[n-1])
}

// fixed gives the sum as a fixed, if it fits.
func (e *exact) fixed() (x fixed, ok bool) {
	for i, d := range e.limbs {
		shift := 32*(int(e.base)+i) + fixedUnit
		size := uint64(max(d, -d))
		if d != 0 && (shift+bits.Len64(size) > fixedTop || !x.sum(size, shift, d < 0)) {
			return fixed{}, false
		}
	}
	return x, true
}

// addFixed adds a fixed.
func (e *exact) addFixed(x fixed) {
	for i, d := range x.digits() {
		e.add128(0, uint64(max(d, -d)), 32*(fixedBase+i), d < 0)
	}
}
