package windowing

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

func TestTumblingSlice(t *testing.T) {
	const (
		lowest  = watermark.Min
		highest = watermark.Max
		end     = watermark.EndOfTime
	)
	cases := []struct {
		size, offset time.Duration
		at           watermark.Time
		want         Span
	}{
		{10, 0, 0, Span{0, 10}},
		{10, 0, 9, Span{0, 10}},
		{10, 0, 10, Span{10, 20}},
		{10, 0, -1, Span{-10, 0}},
		{10, 0, -10, Span{-10, 0}},
		{10, 0, -11, Span{-20, -10}},
		{10, 3, 2, Span{-7, 3}},
		{10, 3, 3, Span{3, 13}},
		{10, -7, 3, Span{3, 13}},
		{10, 13, 2, Span{-7, 3}},
		{10, math.MinInt64, 0, Span{-8, 2}}, // -9223372036854775808 = -8 mod 10
		{10, math.MaxInt64, 0, Span{-3, 7}},
		{1, 0, 0, Span{0, 1}},
		{1, 0, lowest, Span{lowest, lowest + 1}},
		{1, 0, highest, Span{highest, end}},
		{1, 0, highest - 1, Span{highest - 1, highest}},
		{math.MaxInt64, 0, 0, Span{0, end}},
		{math.MaxInt64, 0, -1, Span{lowest, 0}},
		{math.MaxInt64, 0, highest, Span{0, end}},
		{math.MaxInt64, 0, lowest, Span{lowest, 0}},
		{math.MaxInt64, 1, 0, Span{lowest + 1, 1}},
		{math.MaxInt64, -1, -1, Span{-1, highest}},
		{math.MaxInt64, -1, highest, Span{highest, end}},
		{10, 0, highest, Span{highest - highest%10, end}},
		{10, 0, lowest, Span{lowest, lowest + 7}}, // -9223372036854775807 = -7 mod 10
	}
	for _, c := range cases {
		grid, err := NewTumbling(c.size, c.offset)
		require.NoError(t, err)
		require.Equal(t, c.want, grid.Slice(c.at), "size %d offset %d at %d", c.size, c.offset, c.at)
	}
}

// TestTumblingExact compares with arithmetic that cannot overflow.
func TestTumblingExact(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 20_000 {
		size, offset, at := time.Duration(1+edgeInt(r)&math.MaxInt64), time.Duration(edgeInt(r)), watermark.Time(edgeInt(r))
		if size <= 0 {
			size = math.MaxInt64
		}
		at = min(max(at, watermark.Min), watermark.Max)
		grid, err := NewTumbling(size, offset)
		require.NoError(t, err)
		got := grid.Slice(at)
		start := new(big.Int).Sub(big.NewInt(int64(at)), big.NewInt(int64(offset)))
		start.Div(start, big.NewInt(int64(size))) // Euclidean, rounds down for a positive divisor
		start.Mul(start, big.NewInt(int64(size))).Add(start, big.NewInt(int64(offset)))
		end := new(big.Int).Add(start, big.NewInt(int64(size)))
		require.Equal(t, cut(start), got.Start, "size %d offset %d at %d", size, offset, at)
		require.Equal(t, cut(end), got.End, "size %d offset %d at %d", size, offset, at)
		require.True(t, got.Contains(at))
		require.Equal(t, got, grid.Slice(got.Start))
		require.Equal(t, got, grid.Slice(got.last()))
	}
}

// cut brings a bound into the range of spans.
func cut(b *big.Int) watermark.Time {
	switch {
	case b.Cmp(big.NewInt(int64(watermark.Min))) < 0:
		return watermark.Min
	case b.Cmp(big.NewInt(int64(watermark.Max))) > 0:
		return watermark.EndOfTime
	}
	return watermark.Time(b.Int64())
}

// edgeInt gives small numbers, large ones, and those around powers of two.
func edgeInt(r *rand.Rand) int64 {
	n := int64(r.Uint64() >> r.IntN(64))
	switch r.IntN(4) {
	case 0:
		return -n
	case 1:
		return int64(1)<<r.IntN(64) + r.Int64N(5) - 2
	case 2:
		return -(int64(1)<<r.IntN(64) + r.Int64N(5) - 2)
	}
	return n
}

func TestTumblingNext(t *testing.T) {
	grid, err := NewTumbling(10, 0)
	require.NoError(t, err)
	slice := grid.Slice(5)
	for _, after := range []watermark.Time{watermark.Unset, watermark.Min, 0, 9} {
		window, ok := grid.Next(slice, endedBy(after))
		require.True(t, ok)
		require.Equal(t, slice, window)
	}
	for _, after := range []watermark.Time{10, 11, watermark.Max, watermark.EndOfTime} {
		_, ok := grid.Next(slice, endedBy(after))
		require.False(t, ok, after)
	}
	_, ok := grid.Next(grid.Slice(watermark.Max), endedBy(watermark.Max))
	require.True(t, ok, "only the end of time closes the last window")
}

func TestTumblingRefusesSizes(t *testing.T) {
	for _, size := range []time.Duration{0, -1, math.MinInt64} {
		_, err := NewTumbling(size, 0)
		require.ErrorIs(t, err, ErrSize)
		require.ErrorContains(t, err, size.String())
	}
}

func TestTumblingSettings(t *testing.T) {
	settings := func(size, offset time.Duration) []Setting {
		grid, err := NewTumbling(size, offset)
		require.NoError(t, err)
		return grid.Settings()
	}
	require.Equal(t, []Setting{{"size", "1h0m0s"}, {"offset", "15m0s"}}, settings(time.Hour, 15*time.Minute))
	require.Equal(t, settings(time.Hour, 15*time.Minute), settings(time.Hour, -45*time.Minute), "the same grid")
	require.NotEqual(t, settings(time.Hour, 15*time.Minute), settings(time.Hour, -15*time.Minute))
}

func TestSpanOrder(t *testing.T) {
	order := []Span{{0, 1}, {0, 2}, {1, 2}, {-5, 3}, {2, 3}}
	for i, a := range order {
		for j, b := range order {
			require.Equal(t, sign(i-j), a.Compare(b), "%v %v", a, b)
		}
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
