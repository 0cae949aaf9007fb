package agg

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
)

// exact is a sum of floats or of squares without any rounding: a fixed-point
// number whose digits are the limbs, base 2^32. It is the small superaccumulator
// of Neal (Fast Exact Summation Using Small and Large Superaccumulators, 2015),
// with only the limbs that the data needs: prices take three or four. Being
// integer addition, it is the same for every order, cut and merge, needs no
// care about intermediate overflow, and costs the same for each Add, which is
// why it stands here instead of Shewchuk's partials.
//
// Invariant: each limb was changed at most adds times, by less than 2^32, so
// that none overflows while adds <= maxAdds.
type exact struct {
	base  int32 // limbs[0] counts units of 2^(32*base)
	adds  int32
	limbs []int64
	first [4]int64 // where limbs start out, to save an allocation
}

const (
	maxAdds    = 1 << 30
	limbMask   = 1<<32 - 1
	exactLimbs = 256 // more than the span of the square of any float
)

// addFloat adds a finite float.
func (e *exact) addFloat(f float64) {
	mantissa, shift := split(f)
	e.add128(0, mantissa, shift, f < 0)
}

// addSquare adds the square of a finite float.
func (e *exact) addSquare(f float64) {
	mantissa, shift := split(f)
	hi, lo := bits.Mul64(mantissa, mantissa)
	e.add128(hi, lo, 2*shift, false)
}

// addIntSquare adds the square of an integer.
func (e *exact) addIntSquare(i int64) {
	magnitude := uint64(max(i, -i)) // also right for the smallest integer
	hi, lo := bits.Mul64(magnitude, magnitude)
	e.add128(hi, lo, 0, false)
}

// split gives |f| as mantissa * 2^shift with an odd mantissa, so that it takes
// as few limbs as it can; zero is 0.
func split(f float64) (mantissa uint64, shift int) {
	u := math.Float64bits(f)
	mantissa, shift = u&(1<<52-1), int(u>>52&0x7ff)
	if shift == 0 {
		shift = 1
	} else {
		mantissa |= 1 << 52
	}
	if mantissa == 0 {
		return 0, 0
	}
	zeros := bits.TrailingZeros64(mantissa)
	return mantissa >> zeros, shift - 1075 + zeros
}

// add128 adds or subtracts (hi, lo) * 2^shift.
func (e *exact) add128(hi, lo uint64, shift int, negative bool) {
	if hi|lo == 0 {
		return
	}
	if e.adds >= maxAdds {
		e.normalize()
	}
	e.adds++
	at, s := shift>>5, shift&31 // floor division, also below zero
	low, mid, high := lo<<s, hi<<s|lo>>(64-s), hi>>(64-s)
	digits := [5]int64{int64(low & limbMask), int64(low >> 32), int64(mid & limbMask), int64(mid >> 32), int64(high)}
	n := 5
	for digits[n-1] == 0 {
		n--
	}
	limbs := e.window(at, n)
	for i, d := range digits[:n] {
		if negative {
			d = -d
		}
		limbs[i] += d
	}
}

// window is the n limbs from position at on, grown into being where needed.
func (e *exact) window(at, n int) []int64 {
	if len(e.limbs) == 0 {
		e.base = int32(at)
		if e.limbs == nil {
			e.limbs = e.first[:0]
		}
	}
	if missing := int(e.base) - at; missing > 0 {
		old := e.limbs
		e.limbs = grow(e.limbs, len(old)+missing)
		copy(e.limbs[missing:], old)
		clear(e.limbs[:missing])
		e.base = int32(at)
	}
	from := at - int(e.base)
	if have := len(e.limbs); have < from+n {
		e.limbs = grow(e.limbs, from+n)
		clear(e.limbs[have:])
	}
	return e.limbs[from : from+n]
}

// grow makes s n long and keeps its contents.
func grow(s []int64, n int) []int64 {
	if n <= cap(s) {
		return s[:n]
	}
	longer := make([]int64, n, n+2)
	copy(longer, s)
	return longer
}

// merge adds the other sum.
func (e *exact) merge(o *exact) {
	if len(o.limbs) == 0 {
		return
	}
	if e.adds > maxAdds-o.adds {
		e.normalize()
		o.normalize()
	}
	e.adds += o.adds
	limbs := e.window(int(o.base), len(o.limbs))
	for i, d := range o.limbs {
		limbs[i] += d
	}
}

// normalize carries, so that all limbs but the last, which has the sign, are
// digits from 0 to 2^32 - 1. The value stays.
func (e *exact) normalize() {
	if len(e.limbs) > 0 {
		if top := carry(e.limbs); top != 0 {
			e.window(int(e.base)+len(e.limbs), 1)[0] = top
		}
	}
	e.adds = 1
}

// carry normalizes limbs and returns what does not fit into the last.
func carry(limbs []int64) int64 {
	last := len(limbs) - 1
	var c int64
	for i, d := range limbs[:last] {
		d += c
		limbs[i], c = d&limbMask, d>>32
	}
	limbs[last] += c
	if d := limbs[last]; d < -limbMask || d > limbMask {
		limbs[last] = d & limbMask
		return d >> 32
	}
	return 0
}

// append writes the normalized digits.
func (e *exact) append(b []byte) []byte {
	e.normalize()
	b = binary.AppendVarint(b, int64(e.base))
	b = binary.AppendUvarint(b, uint64(len(e.limbs)))
	for i, d := range e.limbs {
		if i == len(e.limbs)-1 {
			return binary.AppendVarint(b, d)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(d))
	}
	return b
}

func (e *exact) decode(d *reader) {
	base, n := d.varint(), d.uvarint()
	if base < -exactLimbs || base > exactLimbs || n > exactLimbs || n > uint64(len(d.b)) {
		d.fail("sum out of range")
		return
	}
	e.base, e.adds = int32(base), 1
	e.limbs = grow(e.first[:0], int(n))
	for i := range e.limbs {
		if i < len(e.limbs)-1 {
			e.limbs[i] = int64(d.fixed32())
			continue
		}
		e.limbs[i] = d.varint()
		if e.limbs[i] < -limbMask || e.limbs[i] > limbMask {
			d.fail("digit out of range")
		}
	}
}

// big is the number as an integer times 2^shift, for the functions whose result
// is not linear.
func (e *exact) big() (i *big.Int, shift int) {
	e.normalize()
	i, digit := new(big.Int), new(big.Int)
	for k := len(e.limbs) - 1; k >= 0; k-- {
		i.Add(i.Lsh(i, 32), digit.SetInt64(e.limbs[k]))
	}
	return i, 32 * int(e.base)
}
