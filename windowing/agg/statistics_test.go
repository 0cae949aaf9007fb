package agg

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVarianceIsTheExactOneRounded(t *testing.T) {
	r := random(t)
	variances, stddevs := mustParse(t, "variance(this.v)"), mustParse(t, "stddev(this.v)")
	for name, shape := range floatShapes {
		t.Run(name, func(t *testing.T) {
			for range 200 {
				rows := rowsFor(r, variances, 2+r.IntN(20), func(r *rand.Rand) Value {
					if v := shape(r); v.IsFinite() {
						return v
					}
					return Float(1)
				})
				want := exactVariance(rows)
				requireNearest(t, want, scatter(t, r, variances, rows))
				root := new(big.Float).SetPrec(200).SetRat(want)
				f, _ := root.Sqrt(root).Float64()
				got, err := scatter(t, r, stddevs, rows).Result()
				if math.IsInf(f, 0) {
					require.ErrorIs(t, err, ErrOverflow)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, f, got.AsFloat())
			}
		})
	}
}

// exactVariance is the mean square distance from the mean, in rationals.
func exactVariance(rows []Input) *big.Rat {
	sum, n := rational(rows)
	mean := sum.Quo(sum, new(big.Rat).SetInt64(n))
	squares := new(big.Rat)
	for _, in := range rows {
		d, _ := rational([]Input{in})
		d.Sub(d, mean)
		squares.Add(squares, d.Mul(d, d))
	}
	return squares.Quo(squares, new(big.Rat).SetInt64(n-1))
}

func TestVarianceDoesNotCancel(t *testing.T) {
	c := mustParse(t, "variance(this.v)")
	require.Equal(t, "30", show(fold(c, inputs(t, c, `[1000000004, 1000000007, 1000000013, 1000000016]`))))
	require.Equal(t, "30", show(fold(c, inputs(t, c, `[1000000000000004.0, 1000000000000007, 1000000000000013, 1000000000000016]`))))
	_, err := fold(c, inputs(t, c, `[1e200, 3e200]`)).Result()
	require.ErrorIs(t, err, ErrOverflow)
}

func TestQuantileAgainstRationals(t *testing.T) {
	r := random(t)
	for range 2000 {
		q := []float64{0, 1, 0.5, 0.25, 0.99, 0.07, 0.333, float64(r.IntN(1001)) / 1000}[r.IntN(8)]
		c := mustParse(t, "quantile(this.v, "+string(Float(q).AppendJSON(nil))+")")
		rows := rowsFor(r, c, 1+r.IntN(150), func(r *rand.Rand) Value {
			if r.IntN(3) == 0 {
				return Float(float64(r.IntN(1000)) / 4)
			}
			return Int(r.Int64N(1000) - 500)
		})
		got, err := scatter(t, r, c, rows).Result()
		require.NoError(t, err)
		want, _ := exactQuantile(q, rows).Float64()
		require.InDelta(t, want, got.AsFloat(), 1e-12*max(1, math.Abs(want)), "q %v of %d", q, len(rows))
		if want == math.Trunc(want) {
			require.Equal(t, want, got.AsFloat(), "a whole result has no rounding error")
		}
	}
}

// exactQuantile interpolates in rationals; q has at most three decimals.
func exactQuantile(q float64, rows []Input) *big.Rat {
	var sorted []*big.Rat
	for _, in := range rows {
		x, _ := rational([]Input{in})
		sorted = append(sorted, x)
	}
	slices.SortFunc(sorted, (*big.Rat).Cmp)
	rank := int(math.Round(q*1000)) * (len(rows) - 1)
	low, high := sorted[rank/1000], sorted[min(rank/1000+1, len(sorted)-1)]
	step := new(big.Rat).Sub(high, low)
	return step.Add(step.Mul(step, big.NewRat(int64(rank%1000), 1000)), low)
}

func TestQuantileRanksAreDecimal(t *testing.T) {
	c := mustParse(t, "quantile(this.v, 0.07)") // 0.07 * 100 is 7.000000000000001 in floats
	acc := c.Function.New(c)
	for i := range 101 {
		acc.Add(Input{Value: Float(float64(i) + 0.25)})
	}
	require.Equal(t, "7.25", show(acc))
}

func TestQuantileOfHugeNumbers(t *testing.T) {
	f := func(q, list, want string) {
		t.Helper()
		c := mustParse(t, "quantile(this.v, "+q+")")
		require.Equal(t, want, show(fold(c, inputs(t, c, list))))
	}
	f("0.5", `[-1.7e308, 1.7e308]`, "0")
	f("0.5", `[-9223372036854775808, 9223372036854775807]`, "-0.5")
	f("0.25", `[9007199254740993, 9007199254740997]`, "9007199254740994")
	f("0.000000000000000001", `[0, 1000000000000000000]`, "1")
	f("1e-3", `[0, 1000]`, "1")
}

func TestQuantileRefusesConstants(t *testing.T) {
	for _, q := range []string{"1.5", "-0.1", "this.q", `"0.5"`, "1e-30", "NaN", "0x1p-1000"} {
		_, err := Parse("quantile(this.v, " + q + ")")
		require.ErrorIs(t, err, ErrCall, q)
		require.ErrorContains(t, err, "q is ")
		require.ErrorContains(t, err, "allowed")
	}
	for _, call := range []string{"top_k(this.v, 0)", "top_k(this.v, 1.5)", "approx_quantile(this.v, 0.5, accuracy: 0)", "median(this.v, limit: 0)", "quantile(this.v)", "top_k(this.v)"} {
		_, err := Parse(call)
		require.ErrorIs(t, err, ErrCall, call)
	}
}

func TestApproxQuantileKeepsItsPromise(t *testing.T) {
	r := random(t)
	for _, accuracy := range []string{"0.2", "0.01", "0.001"} {
		shapes := map[string]func() float64{
			"uniform":   func() float64 { return r.Float64() * 1000 },
			"lognormal": func() float64 { return math.Exp(4 * r.NormFloat64()) },
			"wide":      func() float64 { return math.Pow(10, 17*r.Float64()-5) },
			"negative":  func() float64 { return -math.Exp(2 * r.NormFloat64()) },
		}
		for name, shape := range shapes {
			for _, q := range []string{"0", "0.01", "0.5", "0.99", "1"} {
				c := mustParse(t, "approx_quantile(this.v, "+q+", accuracy: "+accuracy+")")
				var numbers []float64
				acc := c.Function.New(c)
				for range 2000 {
					f := shape()
					numbers = append(numbers, f)
					acc.Add(Input{Value: Float(f)})
				}
				slices.Sort(numbers)
				want := numbers[int(c.Params[0].AsFloat()*1999)]
				got, err := acc.Result()
				require.NoError(t, err)
				require.InEpsilon(t, want, got.AsFloat(), c.Params[1].AsFloat()+1e-5, "%s %s", name, c.Text)
				require.LessOrEqual(t, len(acc.Append(nil)), int(3*45/c.Params[1].AsFloat()))
			}
		}
	}
}

func TestApproxQuantileTakesExtremes(t *testing.T) {
	c := mustParse(t, "approx_quantile(this.v, 1)")
	for _, f := range []float64{1e308, -1e308, math.SmallestNonzeroFloat64, 0, math.MaxInt64} {
		acc := fold(c, []Input{{Value: Float(f)}})
		v, err := reread(t, c, acc).Result()
		require.NoError(t, err)
		require.InDelta(t, f, v.AsFloat(), 0.0101*math.Abs(f)+1e-300)
	}
}

func TestApproxCountDistinctError(t *testing.T) {
	c := mustParse(t, "approx_count_distinct(this.v)")
	acc := c.Function.New(c)
	n := 0
	for _, upTo := range []int{10, 1000, 10_000, 200_000} {
		for ; n < upTo; n++ {
			acc.Add(Input{Value: Int(int64(n))})
			acc.Add(Input{Value: Float(float64(n))})
		}
		v, err := acc.Result()
		require.NoError(t, err)
		require.InEpsilon(t, n, v.AsInt(), 0.025, "three standard errors; the hash has no seed")
		require.LessOrEqual(t, len(acc.Append(nil)), 1<<14+20)
	}
}
