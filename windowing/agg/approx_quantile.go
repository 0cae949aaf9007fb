package agg

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

var approxQuantileFunction = define(Function{
	Name:    "approx_quantile",
	also:    []string{"approx_percentile"},
	Summary: "About the quantile q (DDSketch): a number that is at most the accuracy, 1 % by default, of its own size away from the one of rank q * (n - 1), rounded down. That holds for numbers of one sign within eighteen powers of ten of the largest; those nearer to zero count as the smallest of these. It is rounded to six digits. The same rows give the same answer in every order.",
	Args:    []string{"number"},
	MinArgs: 1,
	Options: []Option{
		quantileOption,
		{Name: "accuracy", Kind: OptionNumber, Min: 0.001, Max: 0.2, Default: Float(0.01), Summary: "Largest relative error. A group takes up to about 160 bytes divided by it for each sign, 16 KiB at 0.01."},
	},
	Check: checkNumber,
	Examples: []Example{
		{Call: "approx_quantile(this.v, 0.5, accuracy: 0.01)", Values: `[1, 2, 3, 4, 100]`, Result: `2.97423`},
		{Call: "approx_quantile(this.v, 0)", Values: `[0, 5, null]`, Result: `0`},
		{Call: "approx_quantile(this.v, 0.99)", Values: `[null]`, Result: `null`},
	},
	prepare: prepareSketch,
}, func(c *Call) approxQuantile { return approxQuantile{call: c} })

// sketchShape is what all sketches of one call share.
type sketchShape struct {
	mapping  mapping.IndexMapping
	bins     int // for one sign
	min, max int // indexes that a number can have
	q        fraction
}

func prepareSketch(c *Call) error {
	if err := prepareQuantile(c); err != nil {
		return err
	}
	accuracy := c.Param("accuracy").AsFloat()
	m, err := mapping.NewLogarithmicMapping(accuracy)
	if err != nil {
		return err
	}
	const span = 1e18
	c.shared = &sketchShape{
		mapping: m,
		bins:    m.Index(span) - m.Index(1) + 1,
		min:     m.Index(m.MinIndexableValue()),
		max:     m.Index(m.MaxIndexableValue()),
		q:       c.shared.(fraction),
	}
	return nil
}

// approxQuantile keeps a sketch once there is a number.
type approxQuantile struct {
	call   *Call
	sketch *ddsketch.DDSketch
}

func (a *approxQuantile) shape() *sketchShape { return a.call.shared.(*sketchShape) }

func (a *approxQuantile) open() {
	if a.sketch == nil {
		s := a.shape()
		a.sketch = ddsketch.NewDDSketch(s.mapping, store.NewCollapsingLowestDenseStore(s.bins), store.NewCollapsingLowestDenseStore(s.bins))
	}
}

func (a *approxQuantile) Add(in Input) {
	if in.Value.IsNull() {
		return
	}
	a.open()
	largest := a.shape().mapping.MaxIndexableValue()
	// Numbers beyond 1.2e308 count as that. Add fails only outside these bounds.
	_ = a.sketch.Add(min(max(in.Value.AsFloat(), -largest), largest))
}

func (a *approxQuantile) Merge(other Accumulator) {
	if o := other.(*approxQuantile); o.sketch != nil {
		a.open()
		_ = a.sketch.MergeWith(o.sketch) // fails only for another accuracy
	}
}

func (a *approxQuantile) Result() (Value, error) {
	if a.sketch == nil || a.sketch.IsEmpty() {
		return Null(), nil
	}
	shape := a.shape()
	rank, _ := shape.q.of(int(a.sketch.GetCount()) - 1)
	return Float(sixDigits(a.ranked(float64(rank)))), nil
}

// ranked finds the bin of a rank, counted from 0. The library's own look-up
// rounds the rank up among negative numbers.
func (a *approxQuantile) ranked(rank float64) float64 {
	negative, positive := a.sketch.GetNegativeValueStore(), a.sketch.GetPositiveValueStore()
	below := negative.TotalCount()
	zeros := a.sketch.GetZeroCount()
	switch {
	case rank < below:
		return -a.shape().mapping.Value(negative.KeyAtRank(below - 1 - rank))
	case rank < below+zeros:
		return 0
	}
	return a.shape().mapping.Value(positive.KeyAtRank(rank - below - zeros))
}

// sixDigits rounds off what the approximation does not know, and in which
// machines may differ. Near the largest float it leaves f as it is.
func sixDigits(f float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'e', 5, 64), 64)
	if err != nil {
		return f
	}
	return rounded
}

// Append writes the counts: of zeros, then for each sign of the bins in use,
// each as its distance from the one before. It is our own form, so that an
// update of the library cannot change what is on disk.
func (a *approxQuantile) Append(b []byte) []byte {
	if a.sketch == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(append(b, 1), uint64(a.sketch.GetZeroCount()))
	b = appendBins(b, a.sketch.GetPositiveValueStore())
	return appendBins(b, a.sketch.GetNegativeValueStore())
}

func appendBins(b []byte, s store.Store) []byte {
	n, last := uint64(0), 0
	s.ForEach(func(int, float64) bool { n++; return false })
	b = binary.AppendUvarint(b, n)
	s.ForEach(func(index int, count float64) bool {
		b = binary.AppendVarint(b, int64(index-last))
		b = binary.AppendUvarint(b, uint64(count))
		last = index
		return false
	})
	return b
}

func (a *approxQuantile) decode(d *reader) {
	switch d.byte() {
	case 0:
		return
	case 1:
	default:
		d.fail("unknown form of a sketch")
		return
	}
	a.open()
	if zeros := d.binCount(); zeros > 0 {
		_ = a.sketch.AddWithCount(0, zeros)
	}
	a.decodeBins(d, a.sketch.GetPositiveValueStore())
	a.decodeBins(d, a.sketch.GetNegativeValueStore())
	if a.sketch.GetCount() > 1<<53 {
		d.fail("count out of range")
	}
}

func (a *approxQuantile) decodeBins(d *reader, s store.Store) {
	shape, index := a.shape(), int64(0)
	for range d.count(2) {
		step, n := d.varint(), d.binCount()
		index += step
		if step > math.MaxInt32 || step < math.MinInt32 || index < int64(shape.min) || index > int64(shape.max) || n == 0 {
			d.fail("bin out of range")
			return
		}
		s.AddWithCount(int(index), n)
	}
}

// binCount reads a count that a float64 holds exactly.
func (d *reader) binCount() float64 {
	n := d.uvarint()
	if n > 1<<53 {
		d.fail("count out of range")
	}
	return float64(n)
}
