package watermark

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseUnit(t *testing.T) {
	for u, name := range []string{"s", "ms", "us", "ns"} {
		got, err := ParseUnit(name)
		require.NoError(t, err)
		require.Equal(t, Unit(u), got)
		require.Equal(t, name, got.String())
	}
	for _, name := range []string{"", "S", "sec", "µs", "m", "h"} {
		_, err := ParseUnit(name)
		require.ErrorIs(t, err, ErrName)
		require.ErrorContains(t, err, "s, ms, us and ns")
	}
	require.Equal(t, "unit 9", Unit(9).String())
}

func TestParsePolicy(t *testing.T) {
	for p, name := range []string{"min", "max"} {
		got, err := ParsePolicy(name)
		require.NoError(t, err)
		require.Equal(t, Policy(p), got)
		require.Equal(t, name, got.String())
	}
	_, err := ParsePolicy("avg")
	require.ErrorIs(t, err, ErrName)
	require.ErrorContains(t, err, "min and max")
	require.Equal(t, "policy 7", Policy(7).String())
}

func TestUnitFromInt(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		n    int64
		want Time
	}{
		{Second, 1700000040, 1_700_000_040e9},
		{Millisecond, 1700000040000, 1_700_000_040e9},
		{Microsecond, 1700000040000000, 1_700_000_040e9},
		{Nanosecond, 1700000040000000001, 1_700_000_040e9 + 1},
		{Millisecond, 1700000040, 1_700_000_040e6}, // never guessed: 1970-01-20
		{Second, 0, 0}, {Second, -1, -1e9}, {Nanosecond, -1, -1},
		{Second, 9223372036, 9223372036e9}, {Second, -9223372036, -9223372036e9},
		{Nanosecond, math.MaxInt64 - 1, Max}, {Nanosecond, math.MinInt64 + 1, Min},
	} {
		got, err := c.unit.FromInt(c.n)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%d %s", c.n, c.unit)
		got, err = c.unit.FromDecimal(strconv.FormatInt(c.n, 10))
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%d %s", c.n, c.unit)
	}
}

// A number out of range is an error that says what it would be in the likely unit.
func TestUnitMixups(t *testing.T) {
	for _, c := range []struct {
		unit   Unit
		n      int64
		likely string
	}{
		{Second, 1700000040000, "2023-11-14T22:14:00Z: likely the unit is ms"},
		{Second, 1700000040000000, "2023-11-14T22:14:00Z: likely the unit is us"},
		{Second, 1700000040000000000, "2023-11-14T22:14:00Z: likely the unit is ns"},
		{Millisecond, 1700000040000000, "likely the unit is us"},
		{Microsecond, 1700000040000000000, "likely the unit is ns"},
		{Second, -1700000040000, "1916-02-18T01:46:00Z: likely the unit is ms"},
		{Second, 9223372037, "likely the unit is ms"},
		{Second, -9223372037, "likely the unit is ms"},
		{Nanosecond, math.MaxInt64, "nor is it in a finer unit"},
		{Nanosecond, math.MinInt64, "nor is it in a finer unit"},
		{Second, math.MinInt64, "nor is it in a finer unit"},
	} {
		_, err := c.unit.FromInt(c.n)
		require.ErrorIs(t, err, ErrRange, "%d %s", c.n, c.unit)
		require.ErrorContains(t, err, c.likely)
		require.ErrorContains(t, err, "read as unit "+c.unit.String())
		_, err = c.unit.FromDecimal(strconv.FormatInt(c.n, 10))
		require.ErrorIs(t, err, ErrRange, "%d %s", c.n, c.unit)
		require.ErrorContains(t, err, c.likely)
	}
}

func TestUnitFromDecimal(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		text string
		want Time
	}{
		{Second, "0", 0}, {Second, "-0", 0}, {Second, "0.000", 0}, {Second, "0e99999999999999999999", 0},
		{Second, "1700000040.123456789", 1_700_000_040_123_456_789},
		{Second, "1.700000040123456789e9", 1_700_000_040_123_456_789},
		{Second, "1700000040123456789E-9", 1_700_000_040_123_456_789},
		{Second, "0.1", 100e6}, {Second, "0.0000000019", 1}, {Second, "1e-9", 1}, {Second, "1e-10", 0},
		{Second, "-1e-10", -1}, {Second, "-0.0000000011", -2}, {Second, "-1e-9", -1},
		{Second, "-1e-99999999999999999999", -1}, {Second, "1e-99999999999999999999", 0},
		{Millisecond, "1.5", 1_500_000}, {Microsecond, "-1.5", -1500}, {Nanosecond, "-1.5", -2}, {Nanosecond, "1.5", 1},
		{Nanosecond, "1700000040000000001", 1_700_000_040_000_000_001}, // beyond 2^53
		{Nanosecond, "9223372036854775806", Max}, {Nanosecond, "9223372036854775806.999", Max},
		{Nanosecond, "-9223372036854775807", Min}, {Nanosecond, "-9223372036854775806.1", Min},
		{Nanosecond, "0." + strings.Repeat("0", 1000) + "5e1001", 5},
		{Nanosecond, "5" + strings.Repeat("0", 1000) + "e-1000", 5},
		{Nanosecond, "1e+18", 1e18},
	} {
		got, err := c.unit.FromDecimal(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, int64(c.want), int64(got), "%s %s", c.text, c.unit)
		got, err = c.unit.FromDecimalBytes([]byte(c.text))
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got)
	}
	for _, text := range []string{
		"", "-", "+1", "01", "-01", "00", ".5", "1.", "1.e5", "1e", "1e+", "1e-", "--1", "1 ", " 1", "1_000", "0x10",
		"NaN", "Infinity", "null", "1,5", "1.5.5", "1e5.5", "1e5e5", "½",
	} {
		_, err := Second.FromDecimal(text)
		require.ErrorIs(t, err, ErrMalformed, text)
		require.ErrorContains(t, err, "JSON number of s")
	}
	for _, text := range []string{
		"9223372036854775807", "-9223372036854775807.1", "-9223372036854775808", "18446744073709551616", "1e19",
		"1e400", "-1e400", "1e99999999999999999999", strings.Repeat("9", 1000),
	} {
		_, err := Nanosecond.FromDecimal(text)
		require.ErrorIs(t, err, ErrRange, text)
		require.Less(t, len(err.Error()), 400)
	}
}

func TestUnitFromFloat(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		f    float64
		want Time
	}{
		{Second, 0, 0}, {Second, math.Copysign(0, -1), 0}, {Second, -1, -1e9},
		{Second, 1700000040.1, 1_700_000_040_100e6}, // binary: .0999999046
		{Second, -0.1, -100e6}, {Second, 0.3, 300e6}, {Second, 14.999, 14_999e6},
		{Millisecond, 1700000040123.5, 1_700_000_040_123_500_000},
		{Nanosecond, 1.7e18, 1.7e18}, {Nanosecond, 1 << 53, 1 << 53},
		{Second, 5e-324, 0}, {Second, -5e-324, -1},
	} {
		got, err := c.unit.FromFloat(c.f)
		require.NoError(t, err)
		require.Equal(t, int64(c.want), int64(got), "%v %s", c.f, c.unit)
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := Second.FromFloat(f)
		require.ErrorIs(t, err, ErrMalformed)
	}
	for _, f := range []float64{1.7e12, -1.7e12, 1e300, math.MaxFloat64, 9223372037} {
		_, err := Second.FromFloat(f)
		require.ErrorIs(t, err, ErrRange)
	}
	_, err := Second.FromFloat(1700000040000.5)
	require.ErrorContains(t, err, "likely the unit is ms")
}

func TestUnitsDoNotAllocate(t *testing.T) {
	text, raw := "1700000040.123456789", []byte("1.7e9")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, err1 := Second.FromDecimal(text)
		_, err2 := Second.FromDecimalBytes(raw)
		_, err3 := Second.FromFloat(1700000040.25)
		_, err4 := Millisecond.FromInt(1700000040123)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			panic(err)
		}
	}))
}

// bigDecimal is the naive reading of a decimal; ok is false where it would take for ever.
func bigDecimal(text string, u Unit) (want Time, inRange, ok bool) {
	if _, e, found := strings.Cut(strings.ToLower(text), "e"); found {
		if n, err := strconv.Atoi(e); err != nil || n > 2000 || n < -2000 {
			return Unset, false, false
		}
	}
	x, ok := new(big.Rat).SetString(text)
	if !ok {
		return Unset, false, false
	}
	x.Mul(x, new(big.Rat).SetInt64(units[u].nanos))
	floor := new(big.Int).Div(x.Num(), x.Denom()) // Euclidean, the denominator is positive
	if floor.Cmp(big.NewInt(int64(Min))) < 0 || floor.Cmp(big.NewInt(int64(Max))) > 0 {
		return Unset, false, true
	}
	return Time(floor.Int64()), true, true
}

// isJSONNumber asks the decoder of the standard library.
func isJSONNumber(text string) bool {
	var n json.Number
	return json.Unmarshal([]byte(text), &n) == nil && n.String() == text && text != ""
}

func FuzzFromDecimal(f *testing.F) {
	for _, text := range []string{
		"0", "-1.5", "1700000040.123456789", "1e-9", "-1e400", "9223372036854775806.999e0", "0.0001E+18", "01", "1.", "123456789012345678901e-11",
	} {
		for u := range units {
			f.Add(text, uint8(u))
		}
	}
	f.Fuzz(func(t *testing.T, text string, unit uint8) {
		u := Unit(unit % 4)
		got, err := u.FromDecimal(text)
		fromBytes, bytesErr := u.FromDecimalBytes([]byte(text))
		require.Equal(t, err == nil, bytesErr == nil)
		require.Equal(t, got, fromBytes)
		require.Equal(t, isJSONNumber(text), !errors.Is(err, ErrMalformed), "%v", err)
		if err != nil {
			require.Equal(t, Unset, got)
		}
		if !isJSONNumber(text) {
			return
		}
		want, inRange, ok := bigDecimal(text, u)
		if !ok {
			return
		}
		if !inRange {
			require.ErrorIs(t, err, ErrRange)
			return
		}
		require.NoError(t, err)
		require.Equal(t, int64(want), int64(got))
	})
}

func FuzzFromFloat(f *testing.F) {
	for _, x := range []float64{0, -0.1, 1.7e12, 1700000040.1, 5e-324, math.MaxFloat64, math.NaN()} {
		f.Add(x, uint8(0))
	}
	f.Fuzz(func(t *testing.T, x float64, unit uint8) {
		u := Unit(unit % 4)
		got, err := u.FromFloat(x)
		want, wantErr := u.FromDecimal(strconv.FormatFloat(x, 'g', -1, 64))
		require.Equal(t, wantErr == nil, err == nil)
		require.Equal(t, want, got)
	})
}

func BenchmarkFromDecimal(b *testing.B) {
	raw := []byte("1700000040.123")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Second.FromDecimalBytes(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFromFloat(b *testing.B) {
	for name, x := range map[string]float64{"whole": 1700000040, "fraction": 1700000040.123} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Second.FromFloat(x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
