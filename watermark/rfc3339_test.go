package watermark

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseRFC3339(t *testing.T) {
	for _, c := range []struct {
		text string
		want Time
	}{
		{"2023-11-14T22:14:00Z", 1_700_000_040e9},
		{"2023-11-14T23:14:30+01:00", 1_700_000_070e9},
		{"2023-11-14T22:14:59.999999999Z", 1_700_000_099_999_999_999},
		{"2023-11-14T22:14:59.9999999999999Z", 1_700_000_099_999_999_999},
		{"2023-11-14T22:14:00.1-00:00", 1_700_000_040_100e6},
		{"2023-11-14T00:00:00-23:59", 1_699_920_000e9 + 86_340e9},
		{"2023-11-14T22:14:00.000000000000000000000001Z", 1_700_000_040e9},
		{"1969-12-31T23:59:59Z", -1e9},
		{"1969-12-31T23:59:59.9999999999Z", -1},
		{"1970-01-01T00:00:00Z", 0},
		{"2000-02-29T00:00:00Z", 951_782_400e9},
		{"1677-09-21T00:12:43.145224193Z", Min},
		{"1677-09-21T00:12:43.1452241939Z", Min},
		{"2262-04-11T23:47:16.854775806Z", Max},
		{"2262-04-11T23:47:16.8547758069Z", Max},
		{"2262-04-12T23:46:16.854775806+23:59", Max},
		{"1677-09-20T00:13:43.145224193-23:59", Min},
	} {
		got, err := ParseRFC3339(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, int64(c.want), int64(got), c.text)
		got, err = ParseRFC3339([]byte(c.text))
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
	}
}

func TestParseRFC3339Refuses(t *testing.T) {
	for _, c := range []struct {
		text string
		want error
		says string
	}{
		{"", ErrMalformed, "ts_strptime"},
		{"yesterday", ErrMalformed, "ts_strptime"},
		{"1700000041", ErrMalformed, "number()"},
		{"-1.5e9", ErrMalformed, "number()"},
		{"2023-11-14 22:14:00", ErrMalformed, "shape"},
		{"2023-11-14 22:14:00Z", ErrMalformed, "shape"},
		{"2023-11-14t22:14:00Z", ErrMalformed, "shape"},
		{"2023-11-14T22:14:00z", ErrMalformed, "shape"},
		{"2023-11-14T22:14:00", ErrMalformed, "no zone"},
		{"2023-11-14T22:14:00.5", ErrMalformed, "no zone"},
		{"2016-12-31T23:59:60Z", ErrMalformed, "leap second"},
		{"2016-12-31T23:59:61Z", ErrMalformed, "time of day"},
		{"2016-12-31T24:00:00Z", ErrMalformed, "time of day"},
		{"2016-12-31T23:60:00Z", ErrMalformed, "time of day"},
		{"2023-02-29T00:00:00Z", ErrMalformed, "date"},
		{"1900-02-29T00:00:00Z", ErrMalformed, "date"},
		{"2023-00-01T00:00:00Z", ErrMalformed, "date"},
		{"2023-13-01T00:00:00Z", ErrMalformed, "date"},
		{"2023-04-31T00:00:00Z", ErrMalformed, "date"},
		{"2023-04-00T00:00:00Z", ErrMalformed, "date"},
		{"2023-11-14T22:14:00.Z", ErrMalformed, "shape"},
		{"2023-11-14T22:14:00,5Z", ErrMalformed, "shape"},
		{"2023-11-14T2:14:00Z", ErrMalformed, "shape"},
		{"2023-11-14T22:14:00+0100", ErrMalformed, "shape"},
		{"2023-11-14T22:14:00+01", ErrMalformed, "shape"},
		{"2023-11-14T22:14:00 01:00", ErrMalformed, "shape"},
		{"2023-11-14T22:14:00+24:00", ErrMalformed, "offset"},
		{"2023-11-14T22:14:00+00:60", ErrMalformed, "offset"},
		{"2023-11-14T22:14:00ZZ", ErrMalformed, "shape"},
		{"2023-11-14T22:14:00Z ", ErrMalformed, "shape"},
		{" 2023-11-14T22:14:00Z", ErrMalformed, "shape"},
		{"+023-11-14T22:14:00Z", ErrMalformed, "shape"},
		{"2023-11-14T22:14:0éZ", ErrMalformed, "shape"},
		{"0000-01-01T00:00:00Z", ErrRange, "1677-09-21"},
		{"1677-09-21T00:12:43.145224192Z", ErrRange, "1677-09-21"},
		{"2262-04-11T23:47:16.854775807Z", ErrRange, "2262-04-11"},
		{"2262-04-12T00:00:00+00:12", ErrRange, "2262-04-11"},
		{"9999-12-31T23:59:59Z", ErrRange, "2262-04-11"},
		{strings.Repeat("x", 1<<20), ErrMalformed, "..."},
	} {
		_, err := ParseRFC3339(c.text)
		require.ErrorIs(t, err, c.want, c.text)
		require.ErrorContains(t, err, c.says)
		require.Less(t, len(err.Error()), 400)
	}
}

func TestParseRFC3339DoesNotAllocate(t *testing.T) {
	text, raw := "2023-11-14T22:14:59.999999999+01:00", []byte("2023-11-14T22:14:59Z")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, err1 := ParseRFC3339(text)
		_, err2 := ParseRFC3339(raw)
		if err1 != nil || err2 != nil {
			panic("refused")
		}
	}))
}

// Texts that are nearly right find more than random bytes.
func TestParseRFC3339AgreesWithStd(t *testing.T) {
	r := seeded(t)
	accepted := 0
	for range 50_000 {
		layout := []string{time.RFC3339, time.RFC3339Nano, "2006-01-02T15:04:05.000Z07:00", "2006-1-2T15:04:05Z"}[r.IntN(4)]
		zone := time.FixedZone("", (r.IntN(2*24*60)-24*60)*60)
		text := []byte(anyTime(r).Std().In(zone).Format(layout))
		for range r.IntN(3) {
			text[r.IntN(len(text))] = "0123456789-:.,TZ+t "[r.IntN(19)]
		}
		if agrees(t, string(text)) {
			accepted++
		}
	}
	require.Greater(t, accepted, 10_000)
}

// agrees compares with time.Parse and returns whether text was accepted.
func agrees(t *testing.T, text string) bool {
	got, err := ParseRFC3339(text)
	std, stdErr := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		require.True(t, errors.Is(err, ErrMalformed) || errors.Is(err, ErrRange))
		require.Equal(t, Unset, got)
		require.True(t, stdErr != nil || stricter(text), "refused: %v", err)
		return false
	}
	require.NoError(t, stdErr, text)
	require.True(t, std.Equal(got.Std()), "%s, want %s", got, std)
	return true
}

// stricter reports whether ParseRFC3339 refuses on purpose what time.Parse takes.
func stricter(text string) bool {
	std, _ := time.Parse(time.RFC3339Nano, text)
	_, offset := std.Zone()
	return strings.Contains(text, ",") || // a decimal comma
		len(text) < len("2006-01-02T15:04:05Z") || text[13] != ':' || // an hour of one digit
		offset <= -24*3600 || offset >= 24*3600 || strings.HasSuffix(text, ":60") || // an offset of 24 h or 60 min
		std.Before(Min.Std()) || std.After(Max.Std())
}

func FuzzParseRFC3339(f *testing.F) {
	for _, text := range []string{
		"2023-11-14T22:14:00Z", "2023-11-14T23:14:30.5+01:00", "2016-12-31T23:59:60Z", "1677-09-21T00:12:43.145224193Z",
		"2262-04-11T23:47:16.854775807Z", "2023-11-14T22:14:00,5Z", "2023-11-14T2:14:00Z", "2023-11-14T22:14:00+24:00",
		"2023-11-14T22:14:00-00:60", "0000-02-29T00:00:00Z", "1700000040", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseRFC3339(text)
		fromBytes, bytesErr := ParseRFC3339([]byte(text))
		require.Equal(t, err == nil, bytesErr == nil)
		require.Equal(t, got, fromBytes)
		if !agrees(t, text) {
			return
		}
		again, err := ParseRFC3339(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

func BenchmarkParseRFC3339(b *testing.B) {
	for name, text := range map[string]string{
		"utc":    "2023-11-14T22:14:00Z",
		"millis": "2023-11-14T22:14:00.123Z",
		"offset": "2023-11-14T22:14:00.123456789+01:00",
	} {
		raw := []byte(text)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseRFC3339(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
