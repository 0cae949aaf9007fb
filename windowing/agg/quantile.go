package agg

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

var quantileFunction = define(Function{
	Name:    "quantile",
	also:    []string{"percentile", "percentile_cont"},
	Summary: "The exact quantile q, from 0 to 1, interpolated linearly between the two nearest numbers. The numbers are kept, so it is bounded; approx_quantile is not.",
	Args:    []string{"number"},
	MinArgs: 1,
	Options: append([]Option{quantileOption}, limitOptions(100_000)...),
	Check:   checkNumber,
	Examples: []Example{
		{Call: "quantile(this.v, 0.9)", Values: `[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, null]`, Result: `9.1`},
		{Call: "quantile(this.v, q: 1)", Values: `[9007199254740993, 1.5]`, Result: `9007199254740993`},
		{Call: "quantile(this.v, 0.5)", Values: `[null]`, Result: `null`},
	},
	prepare: prepareQuantile,
}, func(c *Call) quantile { return quantile{call: c} })

var quantileOption = Option{Name: "q", Kind: OptionNumber, Min: 0, Max: 1, Summary: "Which quantile, for example 0.99."}

// fraction is q as the decimal that the user wrote, so that 0.07 of 101 values
// is the eighth and not a little more.
type fraction struct{ above, below uint64 }

// prepareQuantile computes the fraction of a call.
func prepareQuantile(c *Call) error {
	const places = 18 // so that below fits into 64 bits
	text := strconv.FormatFloat(c.Param("q").AsFloat(), 'f', -1, 64)
	whole, decimals, _ := strings.Cut(text, ".")
	if len(decimals) > places {
		return fmt.Errorf("q is %s, allowed are up to %d decimals", text, places)
	}
	f := fraction{below: 1}
	for range decimals {
		f.below *= 10
	}
	f.above, _ = strconv.ParseUint(whole+decimals, 10, 64)
	c.shared = f
	return nil
}

// of splits f * n into a whole number and a rest below f.below.
func (f fraction) of(n int) (whole int, rest uint64) {
	hi, lo := bits.Mul64(f.above, uint64(n))
	q, rest := bits.Div64(hi, lo, f.below)
	return int(q), rest
}

// quantile keeps all numbers, in the order of Add, so that what is new stands
// at the end. Past the limit it keeps nothing but the fact.
type quantile struct {
	call        *Call
	ints        []int64
	floats      []float64
	savedInts   int // before the last Saved
	savedFloats int
	over        bool
}

func (a *quantile) Add(in Input) {
	if in.Value.IsNull() || a.over || !a.room(1) {
		return
	}
	if v := in.Value.Canonical(); v.kind == KindInt {
		a.ints = append(a.ints, int64(v.bits))
	} else {
		a.floats = append(a.floats, math.Float64frombits(v.bits))
	}
}

// room lets go of everything if n numbers more are too many.
func (a *quantile) room(n int) bool {
	if int64(len(a.ints)+len(a.floats)+n) <= a.call.limit {
		return true
	}
	*a = quantile{call: a.call, over: true}
	return false
}

func (a *quantile) Merge(other Accumulator) {
	o := other.(*quantile)
	switch {
	case a.over:
	case o.over:
		*a = quantile{call: a.call, over: true}
	case a.room(len(o.ints) + len(o.floats)):
		a.ints = append(a.ints, o.ints...)
		a.floats = append(a.floats, o.floats...)
	}
}

func (a *quantile) Result() (Value, error) {
	n := len(a.ints) + len(a.floats)
	switch {
	case a.over:
		return a.call.tooMuch("numbers", "raise the option or use approx_quantile")
	case n == 0:
		return Null(), nil
	}
	f := a.call.shared.(fraction)
	whole, rest := f.of(n - 1)
	low, high := a.ranked(whole)
	if rest == 0 {
		return low, nil
	}
	return interpolate(low, high, rest, f.below), nil
}

// ranked gives the number of rank i, counted from 0, and the next one.
func (a *quantile) ranked(i int) (low, high Value) {
	switch {
	case len(a.floats) == 0:
		return pair(a.ints, i, Int)
	case len(a.ints) == 0:
		return pair(a.floats, i, Float)
	}
	all := make([]Value, 0, len(a.ints)+len(a.floats))
	for _, x := range a.ints {
		all = append(all, Int(x))
	}
	for _, x := range a.floats {
		all = append(all, Float(x))
	}
	slices.SortFunc(all, compareNumbers)
	return all[i], all[min(i+1, len(all)-1)]
}

func pair[T int64 | float64](numbers []T, i int, value func(T) Value) (low, high Value) {
	sorted := slices.Clone(numbers)
	slices.Sort(sorted)
	return value(sorted[i]), value(sorted[min(i+1, len(sorted)-1)])
}

// interpolate is low + (high - low) * rest / below. Between integers the
// difference is exact and rounding comes last.
func interpolate(low, high Value, rest, below uint64) Value {
	t := float64(rest) / float64(below)
	if low.kind == KindInt && high.kind == KindInt {
		hi, lo := bits.Mul64(high.bits-low.bits, rest)
		step, left := bits.Div64(hi, lo, below)
		if between := int64(low.bits + step); left == 0 {
			return Int(between)
		} else {
			return Float(float64(between) + float64(left)/float64(below))
		}
	}
	l, h := low.AsFloat(), high.AsFloat()
	f := l + float64((h-l)*t) // the conversion forbids a fused multiply-add, which would differ between machines
	if math.IsInf(h-l, 0) {
		f = float64(l*(1-t)) + float64(h*t)
	}
	return Float(min(max(f, l), h))
}

func (a *quantile) Append(b []byte) []byte { return a.append(b, a.ints, a.floats) }

func (a *quantile) AppendNew(b []byte) []byte {
	return a.append(b, a.ints[a.savedInts:], a.floats[a.savedFloats:])
}

func (a *quantile) Saved() { a.savedInts, a.savedFloats = len(a.ints), len(a.floats) }

func (a *quantile) append(b []byte, ints []int64, floats []float64) []byte {
	if a.over {
		return append(b, 1)
	}
	b = binary.AppendUvarint(append(b, 0), uint64(len(ints)))
	for _, x := range ints {
		b = binary.AppendVarint(b, x)
	}
	b = binary.AppendUvarint(b, uint64(len(floats)))
	for _, x := range floats {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

func (a *quantile) decode(d *reader) {
	if a.over = d.overLimit(); a.over {
		return
	}
	for range d.count(1) {
		a.Add(Input{Value: Int(d.varint())})
	}
	for range d.count(8) {
		v := Float(math.Float64frombits(d.fixed64()))
		if !v.IsFinite() {
			d.fail("not a finite number")
			return
		}
		a.Add(Input{Value: v})
	}
}
