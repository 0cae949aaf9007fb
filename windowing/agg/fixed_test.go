package agg

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// rat is the number that a fixed stands for.
func (x fixed) rat() *big.Rat {
	i := new(big.Int).Lsh(big.NewInt(x.hi), 64)
	i.Add(i, new(big.Int).SetUint64(x.lo))
	return new(big.Rat).SetFrac(i, new(big.Int).Lsh(big.NewInt(1), fixedUnit))
}

func TestFixedTakesOrLeavesAFloat(t *testing.T) {
	for _, c := range []struct {
		f  float64
		ok bool
	}{
		{0, true}, {math.Copysign(0, -1), true}, {1, true}, {-1, true}, {0.01, true}, {-195.08, true},
		{math.Ldexp(1, -80), true}, {math.Ldexp(1, -81), false}, {-math.Ldexp(3, -81), false},
		{math.Nextafter(1, 2) * math.Ldexp(1, -28), true}, {math.Nextafter(1, 2) * math.Ldexp(1, -29), false},
		{math.Nextafter(math.Ldexp(1, 46), 0), true}, {math.Ldexp(1, 46), false},
		{math.MaxFloat64, false}, {math.SmallestNonzeroFloat64, false}, {math.Inf(1), false}, {math.NaN(), false},
	} {
		var x fixed
		require.Equal(t, c.ok, x.add(c.f), c.f)
		if c.ok {
			require.Zero(t, x.rat().Cmp(new(big.Rat).SetFloat64(c.f)), c.f)
			require.True(t, x.add(-c.f))
		}
		require.Equal(t, fixed{}, x, c.f)
	}
}

// TestFixedOverflow: what does not fit changes nothing, on either side.
func TestFixedOverflow(t *testing.T) {
	for _, sign := range []float64{1, -1} {
		var x fixed
		large := sign * math.Ldexp(1, 45)
		for x.add(large) {
		}
		want := x
		require.False(t, x.merge(x))
		require.Equal(t, want, x)
		require.True(t, x.add(-large))
	}
}

// TestFixedDigits: the digits, the state and the exact are one number.
func TestFixedDigits(t *testing.T) {
	r := random(t)
	for range 5000 {
		x := fixed{int64(r.Uint64()) >> r.IntN(64), r.Uint64() << r.IntN(64)}
		if r.IntN(4) == 0 {
			x.lo = 0
		}
		d := reader{b: x.append(nil)}
		var e exact
		e.decode(&d)
		require.NoError(t, d.err)
		require.Empty(t, d.b)
		back, ok := e.fixed()
		require.True(t, ok || x.hi>>61 != 0 && x.hi>>61 != -1, x)
		if ok {
			require.Equal(t, x, back)
		}
		var sum exact
		sum.addFixed(x)
		i, shift := sum.big()
		got := new(big.Rat).SetFrac(i, new(big.Int).Lsh(big.NewInt(1), uint(-shift)))
		require.Zero(t, got.Cmp(x.rat()), x)
	}
}

func BenchmarkSumAdd(b *testing.B) {
	for name, v := range map[string]Value{"int": Int(7), "price": Float(195.08), "far": Float(1e-20)} {
		b.Run(name, func(b *testing.B) {
			c := mustParse(b, "sum(this.v)")
			acc := c.Function.New(c)
			b.ReportAllocs()
			for b.Loop() {
				acc.Add(Input{Value: v})
			}
		})
	}
}
