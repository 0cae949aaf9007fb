package agg

import (
	"math"
	"math/big"
)

var varianceFunction = define(Function{
	Name:    "variance",
	also:    []string{"var_samp", "var"},
	Summary: "The variance of a sample (divided by n - 1), computed from exact sums; null for fewer than two values.",
	Args:    []string{"number"},
	MinArgs: 1,
	Check:   checkNumber,
	Examples: []Example{
		{Call: "variance(this.v)", Values: `[1, 2, 3, 4]`, Result: `1.6666666666666667`},
		{Call: "variance(this.v)", Values: `[1000000000.1, 1000000000.1, null]`, Result: `0`},
		{Call: "variance(this.v)", Values: `[5, null]`, Result: `null`},
	},
}, func(*Call) variance { return variance{} })

// variance keeps the exact sums of the numbers and of their squares.
type variance struct{ moments }

func (a *variance) Merge(other Accumulator) { a.merge(&other.(*variance).moments) }

func (a *variance) Result() (Value, error) {
	if a.n < 2 {
		return Null(), nil
	}
	f, _ := a.variance().Float64()
	return finite(f)
}

// moments are the exact sums of x and of x^2.
type moments struct {
	total
	squares exact
}

func (m *moments) Add(in Input) {
	m.add(in.Value)
	switch in.Value.kind {
	case KindInt:
		m.squares.addIntSquare(int64(in.Value.bits))
	case KindFloat:
		m.squares.addSquare(math.Float64frombits(in.Value.bits))
	}
}

func (m *moments) merge(o *moments) {
	m.total.merge(&o.total)
	m.squares.merge(&o.squares)
}

func (m *moments) Append(b []byte) []byte { return m.squares.append(m.total.append(b)) }

func (m *moments) decode(d *reader) {
	m.total.decode(d)
	m.squares.decode(d)
}

// variance is (n * sum(x^2) - sum(x)^2) / (n * (n - 1)) for n >= 2: numerator
// and denominator are exact, only the division rounds, far below a float64.
func (m *moments) variance() *big.Float {
	const precision = 256
	sum, shift := m.total.big()
	sum.Neg(sum.Mul(sum, sum))
	squares, squaresShift := m.squares.big()
	n := big.NewInt(m.n)
	above, shift := addShifted(squares.Mul(squares, n), squaresShift, sum, 2*shift)
	if above.Sign() < 0 {
		above.SetInt64(0) // only for a damaged state
	}
	below := new(big.Int).Mul(n, big.NewInt(m.n-1))
	f := new(big.Float).SetInt(above)
	f.SetMantExp(f, shift)
	return new(big.Float).SetPrec(precision).Quo(f, new(big.Float).SetInt(below))
}
