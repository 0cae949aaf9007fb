package agg

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// rational is the exact sum and the number of values that are not null.
func rational(rows []Input) (*big.Rat, int64) {
	total, n := new(big.Rat), int64(0)
	for _, in := range rows {
		switch in.Value.Kind() {
		case KindInt:
			total.Add(total, new(big.Rat).SetInt64(in.Value.AsInt()))
		case KindFloat:
			total.Add(total, new(big.Rat).SetFloat64(in.Value.AsFloat()))
		default:
			continue
		}
		n++
	}
	return total, n
}

// requireNearest compares a result with the float nearest to the exact one.
func requireNearest(t *testing.T, want *big.Rat, acc Accumulator) {
	nearest, _ := want.Float64()
	got, err := acc.Result()
	if math.IsInf(nearest, 0) {
		require.ErrorIs(t, err, ErrOverflow)
		require.True(t, got.IsNull())
		return
	}
	require.NoError(t, err)
	require.True(t, nearest == got.AsFloat(), "want %v, got %v", nearest, got.AsFloat())
}

// floats of several shapes: alike, spread over all exponents, tiny, cancelling.
var floatShapes = map[string]func(r *rand.Rand) Value{
	"money":     func(r *rand.Rand) Value { return Float(float64(r.Int64N(100000)) / 100) },
	"any":       func(r *rand.Rand) Value { return Float(math.Float64frombits(r.Uint64())) },
	"subnormal": func(r *rand.Rand) Value { return Float(math.Float64frombits(r.Uint64() &^ (0x7fe << 52))) },
	"largest":   func(r *rand.Rand) Value { return Float(math.Copysign(math.MaxFloat64, r.Float64()-0.5)) },
	"near ties": func(r *rand.Rand) Value {
		return Float(math.Ldexp(float64(1+r.IntN(2)), -53*r.IntN(4)) * float64(1-2*r.IntN(2)))
	},
	"fixed edge": func(r *rand.Rand) Value {
		return Float(math.Ldexp(r.NormFloat64(), []int{-90, -80, -30, -27, 40, 45, 46, 47}[r.IntN(8)]))
	},
	"with ints": func(r *rand.Rand) Value {
		if r.IntN(2) == 0 {
			return Int(int64(r.Uint64()) >> r.IntN(64))
		}
		return Float(math.Ldexp(r.NormFloat64(), r.IntN(140)-70))
	},
}

func TestSumAndAvgAreTheExactOnesRounded(t *testing.T) {
	r := random(t)
	sums, avgs := mustParse(t, "sum(this.v)"), mustParse(t, "avg(this.v)")
	for name, shape := range floatShapes {
		t.Run(name, func(t *testing.T) {
			for range 500 {
				rows := append(rowsFor(r, sums, 1+r.IntN(30), shape), Input{Value: Float(0)})
				exact, n := rational(rows)
				requireNearest(t, exact, scatter(t, r, sums, rows))
				exact.Quo(exact, new(big.Rat).SetInt64(n))
				requireNearest(t, exact, scatter(t, r, avgs, rows))
			}
		})
	}
}

func TestAvgOfIntegersIsExact(t *testing.T) {
	r := random(t)
	c := mustParse(t, "avg(this.v)")
	for range 2000 {
		rows := rowsFor(r, c, 1+r.IntN(20), func(r *rand.Rand) Value { return Int(int64(r.Uint64()) >> r.IntN(64)) })
		exact, n := rational(rows)
		requireNearest(t, exact.Quo(exact, new(big.Rat).SetInt64(n)), scatter(t, r, c, rows))
	}
}

func TestSumOfIntegersOverflowsOnlyAtTheEnd(t *testing.T) {
	c := mustParse(t, "sum(this.v)")
	for _, v := range []struct {
		list, want string
	}{
		{`[9223372036854775807, 9223372036854775807, -9223372036854775807]`, "9223372036854775807"},
		{`[-9223372036854775808, -1, 1]`, "-9223372036854775808"},
		{`[9223372036854775807, 1, 0]`, ""},
		{`[-9223372036854775808, -1]`, ""},
		{`[9223372036854775807, 1, 0.5]`, "9223372036854776000"}, // a float among them: rounded, no overflow
	} {
		r := random(t)
		for range 20 {
			got, err := scatter(t, r, c, inputs(t, c, v.list)).Result()
			if v.want == "" {
				require.ErrorIs(t, err, ErrOverflow)
				require.True(t, got.IsNull())
				continue
			}
			require.NoError(t, err)
			require.Equal(t, v.want, string(got.AppendJSON(nil)))
		}
	}
}

func TestIntermediateFloatOverflowDoesNoHarm(t *testing.T) {
	c := mustParse(t, "sum(this.v)")
	require.Equal(t, "1e+308", show(fold(c, inputs(t, c, `[1e308, 1e308, -1e308]`))))
	require.Equal(t, "1.7976931348623157e+308", show(fold(c, inputs(t, c, `[1.7976931348623157e308, 9e291, -1e291]`))), "just below the tie that rounds to infinity")
	_, err := fold(c, inputs(t, c, `[1e308, 1e308]`)).Result()
	require.True(t, errors.Is(err, ErrOverflow))
}

func TestManyAddsCarry(t *testing.T) {
	var e exact
	e.addFloat(math.Nextafter(1, 2))
	e.adds = maxAdds // as after a billion rows
	e.addFloat(-3)
	require.Less(t, e.adds, int32(10))
	var o exact
	o.addFloat(0.25)
	e.adds, o.adds = maxAdds, maxAdds
	e.merge(&o)
	require.Less(t, e.adds, int32(10))
	s := total{n: 3, far: &e, floats: true}
	require.Equal(t, math.Nextafter(1, 2)-3+0.25, s.quotient(1))
}

func TestRepeatedNormalizationKeepsNegativeSums(t *testing.T) {
	var e exact
	e.addFloat(-1e-300)
	for range 100 {
		e.normalize()
	}
	require.LessOrEqual(t, len(e.limbs), 5)
	require.Equal(t, -1e-300, (&total{far: &e, floats: true}).quotient(1))
}

func BenchmarkSumResult(b *testing.B) {
	for name, list := range map[string]string{"ints": `[1,2,3]`, "money": `[0.1,0.2,12.5]`} {
		for _, call := range []string{"sum(this.v)", "avg(this.v)"} {
			b.Run(call+"/"+name, func(b *testing.B) {
				c := mustParse(b, call)
				acc := fold(c, inputs(b, c, list))
				b.ReportAllocs()
				for b.Loop() {
					_, _ = acc.Result()
				}
			})
		}
	}
}
