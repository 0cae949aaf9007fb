package watermark

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestString(t *testing.T) {
	for _, c := range []struct {
		at   Time
		want string
	}{
		{Unset, "unset"},
		{Min, "1677-09-21T00:12:43.145224193Z"},
		{-1_000_000_001, "1969-12-31T23:59:58.999999999Z"},
		{-1e9, "1969-12-31T23:59:59Z"},
		{-1, "1969-12-31T23:59:59.999999999Z"},
		{0, "1970-01-01T00:00:00Z"},
		{1, "1970-01-01T00:00:00.000000001Z"},
		{100e6, "1970-01-01T00:00:00.1Z"},
		{1_700_000_040_120e6, "2023-11-14T22:14:00.12Z"},
		{Max, "2262-04-11T23:47:16.854775806Z"},
		{EndOfTime, "end of time"},
	} {
		require.Equal(t, c.want, c.at.String())
		require.Equal(t, "at "+c.want, string(c.at.AppendRFC3339([]byte("at "))))
	}
}

func TestStringAgreesWithStd(t *testing.T) {
	check := func(at Time) {
		text := at.String()
		back, err := ParseRFC3339(text)
		if want := at.Std().Format(time.RFC3339Nano); text != want || err != nil || back != at {
			require.Fail(t, "disagreement", "%d is %s, want %s, and back %d, %v", at, text, want, back, err)
		}
	}
	// Every day of the range, at its first and last nanosecond.
	for day := Min.Floor(24*time.Hour, 0); day < Max; day = day.Add(24 * time.Hour) {
		check(day)
		check(day.Add(24*time.Hour - 1))
	}
	r := seeded(t)
	for range 10_000 {
		check(anyTime(r))
	}
}

func TestFormatDoesNotAllocate(t *testing.T) {
	b := make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() { b = Time(1_700_000_040_123e6).AppendRFC3339(b[:0]) }))
}

func BenchmarkAppendRFC3339(b *testing.B) {
	b.ReportAllocs()
	buf := make([]byte, 0, 64)
	at := Time(1_700_000_040_123e6)
	for b.Loop() {
		buf = at.AppendRFC3339(buf[:0])
	}
}
