package watermark

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sameAnswer reads texts one after the other and compares with ParseRFC3339.
func sameAnswer(t *testing.T, r *RFC3339Reader, texts ...string) {
	for _, text := range texts {
		want, wantErr := ParseRFC3339(text)
		got, err := r.Parse(text)
		require.Equal(t, wantErr, err, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
}

func TestRFC3339ReaderAgrees(t *testing.T) {
	for _, date := range []string{"2023-11-14", "1970-01-01", "1969-12-31", "1678-01-01", "1677-09-21", "1677-09-22", "1677-09-23", "2262-04-09", "2262-04-10", "2262-04-11", "2262-04-12", "2000-02-29", "2023-02-29", "0000-00-00", strings.Repeat("\x00", 10)} {
		var r RFC3339Reader
		for _, clock := range []string{
			"00:00:00Z", "23:59:59Z", "23:59:59.999999999Z", "23:59:59.9999999999Z", "24:00:00Z", "29:00:00Z", "30:00:00Z", "19:60:00Z", "19:59:60Z", "19:59:5:Z", "1/:00:00Z", "10;00:00Z", "10:00 00Z",
			"00:12:43.145224193Z", "00:12:43.145224192Z", "23:47:16.854775806Z", "23:47:16.854775807Z",
			"10:00:00.1Z", "10:00:00.12Z", "10:00:00.123Z", "10:00:00.1234Z", "10:00:00.12345Z", "10:00:00.123456Z", "10:00:00.1234567Z", "10:00:00.12345678Z",
			"10:00:00.Z", "10:00:00,5Z", "10:00:00.5xZ", "10:00:00.x5Z", "10:00:00ZZ", "10:00:00 Z", "10:00:00z", "10:00:00", "10:00:00.5", "10:00:00+00:00", "10:00:00+01:00", "10:00:00.5-23:59", "10:00:0Z", "\x8010:00:0Z", "1\xb0:00:00Z", "10:00:\xff0Z",
		} {
			sameAnswer(t, &r, date+"T"+clock, date+"t"+clock, date+" "+clock, date+"T00:00:00Z")
		}
	}
	var r RFC3339Reader
	sameAnswer(t, &r, "", "Z", strings.Repeat("\x00", 10)+"T00:00:00Z", "2023-11-14T00:00:00Z", "2023-11-15T00:00:00Z", "2033-11-14T00:00:00Z", "2023-11-14T00:00:00Z")
}

// Every second of a day, and every byte in every place of it.
func TestRFC3339ReaderAgreesOnEveryClock(t *testing.T) {
	var r RFC3339Reader
	for second := range secondsPerDay {
		text := fmt.Sprintf("2024-02-29T%02d:%02d:%02dZ", second/3600, second/60%60, second%60)
		want, err := ParseRFC3339(text)
		require.NoError(t, err)
		got, err := r.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for at := range shortest {
		for c := range 256 {
			text := []byte("2024-02-29T19:19:19Z")
			text[at] = byte(c)
			sameAnswer(t, &r, "2024-02-29T19:19:19Z", string(text))
		}
	}
}

func FuzzRFC3339Reader(f *testing.F) {
	f.Add("2023-11-14T22:14:00Z", "2023-11-14T23:14:30.5Z")
	f.Add("2023-11-14T22:14:00.123Z", "2023-11-14T23:59:60Z")
	f.Add("1677-09-21T00:12:43.145224193Z", "1677-09-21T00:12:43.145224192Z")
	f.Add("2262-04-11T23:47:16.854775806Z", "2262-04-11T23:47:16.854775807Z")
	f.Add("2023-11-14T22:14:00+01:00", "2023-11-14T22:14:00.1234567890Z")
	f.Fuzz(func(t *testing.T, one, other string) {
		var r RFC3339Reader
		sameAnswer(t, &r, one, other, one)
		if len(one) >= clockAt && len(other) >= clockAt {
			sameAnswer(t, &r, one, one[:clockAt]+other[clockAt:])
		}
	})
}

func TestRFC3339ReaderDoesNotAllocate(t *testing.T) {
	var r RFC3339Reader
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := r.Parse("2023-11-14T22:14:59.999Z"); err != nil {
			panic(err)
		}
	}))
}

func BenchmarkRFC3339Reader(b *testing.B) {
	const n = 1024
	for name, step := range map[string]time.Duration{"same day": time.Millisecond, "other day": 25 * time.Hour} {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = Time(1_700_000_040e9).Add(time.Duration(i) * step).Std().Format("2006-01-02T15:04:05.000Z")
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var r RFC3339Reader
			i := 0
			for b.Loop() {
				if _, err := r.Parse(texts[i%n]); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
