package watermark

import (
	"flag"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// instants are the times at which arithmetic goes wrong.
var instants = []Time{
	Unset, Min, Min + 1, -9223372036854775000, -9223372036000000000, -9223372036000000001,
	-1e18, -1_000_000_001, -1e9, -999_999_999, -11, -10, -1, 0, 1, 9, 10, 999_999_999, 1e9,
	1_000_000_001, 1_700_000_040e9, 9223372036000000000, Max - 1, Max, EndOfTime,
}

var spans = []time.Duration{
	math.MinInt64, math.MinInt64 + 1, -time.Hour, -time.Second, -11, -10, -1, 0, 1, 3, 10, 11,
	time.Second, time.Hour, 365 * 24 * time.Hour, math.MaxInt64 - 1, math.MaxInt64,
}

var seedFlag = flag.Uint64("seed", 0, "replay a random test with the seed that it printed")

// seeded is a generator whose seed is printed when the test fails.
func seeded(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("replay with -seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// anyTime is an event time near 1970, near an end, or anywhere.
func anyTime(r *rand.Rand) Time {
	switch r.IntN(4) {
	case 0:
		return Time(r.Int64N(200) - 100)
	case 1:
		return Min + Time(r.Int64N(1e10))
	case 2:
		return Max - Time(r.Int64N(1e10))
	}
	return max(Min, min(Max, Time(r.Uint64())))
}

func clamp(n *big.Int, low, high int64) int64 {
	if n.Cmp(big.NewInt(low)) < 0 {
		return low
	}
	if n.Cmp(big.NewInt(high)) > 0 {
		return high
	}
	return n.Int64()
}

func TestAddSaturates(t *testing.T) {
	check := func(at Time, d time.Duration) {
		want := at
		if at != Unset && at != EndOfTime {
			want = Time(clamp(new(big.Int).Add(big.NewInt(int64(at)), big.NewInt(int64(d))), int64(Min), int64(Max)))
		}
		require.Equal(t, int64(want), int64(at.Add(d)), "%d + %d", at, d)
	}
	for _, at := range instants {
		for _, d := range spans {
			check(at, d)
		}
	}
	r := seeded(t)
	for range 10_000 {
		check(anyTime(r), time.Duration(r.Uint64()))
	}
}

func TestSubSaturates(t *testing.T) {
	check := func(a, b Time) {
		want := clamp(new(big.Int).Sub(big.NewInt(int64(a)), big.NewInt(int64(b))), math.MinInt64, math.MaxInt64)
		require.Equal(t, want, int64(a.Sub(b)), "%d - %d", a, b)
	}
	for _, a := range instants {
		for _, b := range instants {
			check(a, b)
		}
	}
	r := seeded(t)
	for range 10_000 {
		check(anyTime(r), anyTime(r))
	}
}

func TestFloor(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		at, want     Time
		size, offset time.Duration
	}{
		// Windows of 10 s before and after 1970.
		{-21e9, -30e9, 10 * s, 0}, {-20e9, -20e9, 10 * s, 0}, {-11e9, -20e9, 10 * s, 0},
		{-10e9, -10e9, 10 * s, 0}, {-1, -10e9, 10 * s, 0}, {0, 0, 10 * s, 0}, {1, 0, 10 * s, 0},
		{10e9 - 1, 0, 10 * s, 0}, {10e9, 10e9, 10 * s, 0},
		// An offset counts modulo the size, whatever its sign and size.
		{0, -7e9, 10 * s, 3 * s}, {3e9, 3e9, 10 * s, 3 * s}, {3e9 - 1, -7e9, 10 * s, 3 * s},
		{0, -7e9, 10 * s, -7 * s}, {0, -7e9, 10 * s, 1003 * s}, {-8e9, -17e9, 10 * s, 3 * s},
		{0, Min + 1, math.MaxInt64, 1}, {0, Min + 1, math.MaxInt64, math.MinInt64 + 2},
		// The smallest and the largest windows.
		{-1, -1, 1, 0}, {0, 0, 1, 99}, {Max, Max, 1, 0}, {Min, Min, 1, 0},
		{Max, 0, math.MaxInt64, 0}, {-1, Min, math.MaxInt64, 0},
		// Saturating: the true start is before Min.
		{Min, Min, 10 * s, 0}, {Min + 1, Min, math.MaxInt64, 2},
		{Unset, Unset, 10 * s, 3}, {EndOfTime, EndOfTime, 10 * s, 3},
	} {
		require.Equal(t, int64(c.want), int64(c.at.Floor(c.size, c.offset)), "%+v", c)
	}
	require.Panics(t, func() { Time(0).Floor(0, 0) })
	require.Panics(t, func() { Time(0).Floor(-1, 0) })
}

func TestFloorAgreesWithIntegers(t *testing.T) {
	r := seeded(t)
	for range 10_000 {
		at := anyTime(r)
		size := 1 + time.Duration(r.Int64N(math.MaxInt64)>>r.IntN(63))
		offset := time.Duration(r.Uint64()) >> r.IntN(63)
		m := big.NewInt(int64(size))
		k := new(big.Int).Sub(big.NewInt(int64(at)), big.NewInt(int64(offset)))
		k.Div(k, m) // Euclidean, which is floored for m > 0
		want := k.Mul(k, m).Add(k, big.NewInt(int64(offset)))
		require.Equal(t, clamp(want, int64(Min), int64(Max)), int64(at.Floor(size, offset)),
			"floor(%d, %d, %d)", at, size, offset)
	}
}

func TestStd(t *testing.T) {
	for _, at := range instants {
		std := at.Std()
		require.Equal(t, time.UTC, std.Location())
		back, err := FromStd(std)
		if at == Unset || at == EndOfTime {
			require.ErrorIs(t, err, ErrRange)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, at, back)
	}
	for _, std := range []time.Time{
		{}, // year 1
		Min.Std().Add(-1), Max.Std().Add(1), Min.Std().Add(-time.Second), Max.Std().Add(time.Second),
		time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), time.Unix(-1<<62, 999),
		time.Unix(9223372037, 0), time.Unix(-9223372038, 0), time.Unix(-9223372037, 0),
	} {
		_, err := FromStd(std)
		require.ErrorIs(t, err, ErrRange, "%v", std)
	}
	zoned := time.Date(2023, 11, 14, 23, 14, 0, 5, time.FixedZone("", 3600))
	at, err := FromStd(zoned)
	require.NoError(t, err)
	require.Equal(t, Time(1_700_000_040e9+5), at)
}

func BenchmarkFloor(b *testing.B) {
	b.ReportAllocs()
	at := Time(1_700_000_040e9)
	for b.Loop() {
		at = at.Floor(5*time.Minute, time.Second) + 1
	}
}
