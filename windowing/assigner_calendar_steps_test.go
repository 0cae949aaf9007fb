package windowing

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// testSteps makes a grid; the step is one of the calendar or a duration.
func testSteps(size, step string, offset time.Duration, zone string) (*CalendarCumulative, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, err
	}
	whole, _, err := ParseCalendarSize(size)
	if err != nil {
		return nil, err
	}
	if days, ok, err := ParseCalendarSize(step); ok || err != nil {
		return NewCalendarCumulative(whole, days, offset, loc)
	}
	length, err := time.ParseDuration(step)
	if err != nil {
		return nil, err
	}
	return NewCalendarSteps(whole, length, offset, loc)
}

// TestCalendarSteps states the ends of the steps of a size.
func TestCalendarSteps(t *testing.T) {
	for _, c := range []struct {
		size, step string
		offset     time.Duration
		zone       string
		start      string
		ends       []string
	}{
		{"1d", "6h", 0, "UTC", "2024-05-01T00:00:00Z", []string{"2024-05-01T06:00:00Z", "2024-05-01T12:00:00Z", "2024-05-01T18:00:00Z", "2024-05-02T00:00:00Z"}},
		// 23 hours
		{"1d", "6h", 0, "America/New_York", "2024-03-10T05:00:00Z", []string{"2024-03-10T11:00:00Z", "2024-03-10T17:00:00Z", "2024-03-10T23:00:00Z", "2024-03-11T04:00:00Z"}},
		// 25 hours
		{"1d", "6h", 0, "America/New_York", "2024-11-03T04:00:00Z", []string{"2024-11-03T10:00:00Z", "2024-11-03T16:00:00Z", "2024-11-03T22:00:00Z", "2024-11-04T04:00:00Z", "2024-11-04T05:00:00Z"}},
		{"1d", "24h", 0, "America/New_York", "2024-03-10T05:00:00Z", []string{"2024-03-11T04:00:00Z"}},
		{"1d", "24h", 0, "America/New_York", "2024-11-03T04:00:00Z", []string{"2024-11-04T04:00:00Z", "2024-11-04T05:00:00Z"}},
		{"1d", "12h", 4 * time.Hour, "Europe/Paris", "2024-03-31T02:00:00Z", []string{"2024-03-31T14:00:00Z", "2024-04-01T02:00:00Z"}},
		// half an hour
		{"1d", "8h", 0, "Australia/Lord_Howe", "2024-04-06T13:00:00Z", []string{"2024-04-06T21:00:00Z", "2024-04-07T05:00:00Z", "2024-04-07T13:00:00Z", "2024-04-07T13:30:00Z"}},
		{"2d", "1d", 0, "Europe/Paris", "2024-03-29T23:00:00Z", []string{"2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z"}},
		{"1w", "1d", 0, "UTC", "2024-12-30T00:00:00Z", []string{"2024-12-31T00:00:00Z", "2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z", "2025-01-03T00:00:00Z", "2025-01-04T00:00:00Z", "2025-01-05T00:00:00Z", "2025-01-06T00:00:00Z"}},
		{"2w", "1w", 0, "UTC", "2024-12-30T00:00:00Z", []string{"2025-01-06T00:00:00Z", "2025-01-13T00:00:00Z"}},
		{"1q", "1mo", 0, "Asia/Tokyo", "2024-03-31T15:00:00Z", []string{"2024-04-30T15:00:00Z", "2024-05-31T15:00:00Z", "2024-06-30T15:00:00Z"}},
		{"1y", "1q", 0, "UTC", "2024-01-01T00:00:00Z", []string{"2024-04-01T00:00:00Z", "2024-07-01T00:00:00Z", "2024-10-01T00:00:00Z", "2025-01-01T00:00:00Z"}},
		{"1w", "168h", -2 * time.Hour, "UTC", "2025-01-05T22:00:00Z", []string{"2025-01-12T22:00:00Z"}},
	} {
		grid, err := testSteps(c.size, c.step, c.offset, c.zone)
		require.NoError(t, err)
		start := at(t, c.start)
		var want []Span
		for _, end := range c.ends {
			want = append(want, Span{start, at(t, end)})
		}
		for i, window := range want {
			slice := grid.Slice(window.last())
			from := start
			if i > 0 {
				from = want[i-1].End
			}
			require.Equal(t, Span{from, window.End}, slice, "%+v", c)
			require.Equal(t, want[i:], windowsOf(grid, slice, endedBy(watermark.Unset)), "%+v", c)
		}
	}
}

// TestCalendarStepsOfMonth: each day of a month, also where its offset begins them
// on another day.
func TestCalendarStepsOfMonth(t *testing.T) {
	for _, offset := range []time.Duration{0, 4 * time.Hour, -2 * time.Hour, 36 * time.Hour} {
		grid, err := testSteps("1mo", "1d", offset, "Europe/Paris")
		require.NoError(t, err)
		first := time.Date(2024, 3, 1, 0, 0, 0, 0, grid.size.zone)
		begin := func(day int) watermark.Time {
			local := first.AddDate(0, 0, day)
			at, err := watermark.FromStd(time.Date(local.Year(), local.Month(), local.Day(), 0, int(offset.Minutes()), 0, 0, grid.size.zone))
			require.NoError(t, err)
			return at
		}
		windows := windowsOf(grid, grid.Slice(begin(0)), endedBy(watermark.Unset))
		require.Len(t, windows, 31)
		for day, w := range windows {
			require.Equal(t, Span{begin(0), begin(day + 1)}, w, "offset %s", offset)
		}
	}
}

// TestCalendarStepsAnywhere: slices follow one another without gaps, and windows are
// those of the definition: from the start of the size to the end of a slice in it.
func TestCalendarStepsAnywhere(t *testing.T) {
	seed := newSeed(t)
	r := rand.New(rand.NewPCG(seed, 11))
	zones := []string{"UTC", "Europe/Paris", "America/Sao_Paulo", "Pacific/Apia", "Australia/Lord_Howe", "Africa/Monrovia", "Asia/Manila"}
	grids := [][2]string{{"1d", "1h"}, {"1d", "45m"}, {"3d", "1d"}, {"4d", "2d"}, {"3d", "8h"}, {"1w", "1d"}, {"1mo", "1d"}, {"1mo", "8h"}, {"2q", "1mo"}, {"1y", "1d"}}
	for range 300 {
		g, zone := grids[r.IntN(len(grids))], zones[r.IntN(len(zones))]
		grid, err := testSteps(g[0], g[1], time.Duration(r.IntN(95)-47)*15*time.Minute/2, zone)
		require.NoError(t, err)
		where := []watermark.Time{watermark.Min, watermark.Max, at(t, "2011-12-30T10:00:00Z"), at(t, "2024-03-31T01:00:00Z"), watermark.Time(r.Uint64())}[r.IntN(5)]
		where = min(max(where.Add(time.Duration(r.Int64N(int64(100*time.Hour))-int64(50*time.Hour))), watermark.Min), watermark.Max)
		whole := grid.size.Slice(where)
		var cuts []watermark.Time // ends of slices
		for at := whole.Start; at < whole.End && len(cuts) < 1000; {
			slice := grid.Slice(at)
			require.Equal(t, at, slice.Start, "seed %d: %v in %s at %s", seed, g, zone, at)
			require.Greater(t, slice.End, at)
			require.Equal(t, slice, grid.Slice(slice.last()))
			cuts, at = append(cuts, slice.End), slice.End
			if at == watermark.EndOfTime {
				break
			}
		}
		require.Equal(t, whole.End, cuts[len(cuts)-1])
		slice := grid.Slice(where)
		n := slices.Index(cuts, slice.End)
		windows := windowsOf(grid, slice, endedBy(watermark.Unset))
		require.Len(t, windows, len(cuts)-n)
		for i, w := range windows {
			require.Equal(t, Span{whole.Start, cuts[n+i]}, w, "seed %d: %v in %s", seed, g, zone)
			for _, after := range []watermark.Time{w.End - 1, w.End} {
				next, ok := grid.Next(slice, endedBy(after))
				left := windows[i+int(after-w.End)+1:]
				require.Equal(t, len(left) > 0, ok)
				require.True(t, !ok || next == left[0], "seed %d: %v in %s", seed, g, zone)
			}
			if next, ok := grid.Next(slice, Span{w.Start - 1, w.End}); w.Start > watermark.Min {
				require.True(t, ok && next == w, "one that ends with it and starts before")
			}
		}
	}
}

func TestCalendarStepsRefuse(t *testing.T) {
	for _, c := range []struct {
		size, step string
		offset     time.Duration
		want       error
	}{
		{"1d", "7h", 0, ErrSlide},
		{"1d", "25h", 0, ErrSlide},
		{"1d", "0s", 0, ErrSlide},
		{"1d", "-1h", 0, ErrSlide},
		{"1d", "500ms", 0, ErrSlide},
		{"1mo", "48h", 0, ErrSlide},
		{"1y", "1m", 0, ErrSlide},
		{"1mo", "1w", 0, ErrSlide},
		{"1mo", "2d", 0, ErrSlide},
		{"1w", "2d", 0, ErrSlide},
		{"1d", "1w", 0, ErrSlide},
		{"1d", "1mo", 0, ErrSlide},
		{"1y", "5mo", 0, ErrSlide},
		{"1d", "1h", 24 * time.Hour, ErrCalendar},
		{"1y", "1mo", 40 * dayHours, ErrCalendar},
	} {
		_, err := testSteps(c.size, c.step, c.offset, "UTC")
		require.ErrorIs(t, err, c.want, "%+v", c)
		require.True(t, c.offset != 0 || len(err.Error()) > 0)
	}
	for _, fits := range [][2]string{{"1d", "24h"}, {"2d", "48h"}, {"1mo", "24h"}, {"1y", "10m"}, {"1d", "1s"}} {
		_, err := testSteps(fits[0], fits[1], 0, "UTC")
		require.NoError(t, err, fits)
	}
}

func TestCalendarStepsSettings(t *testing.T) {
	grid, err := testSteps("1mo", "1d", 4*time.Hour, "Europe/Paris")
	require.NoError(t, err)
	require.Equal(t, []Setting{{"size", "1mo"}, {"step", "1d"}, {"offset", "4h0m0s"}, {"timezone", "Europe/Paris"}}, grid.Settings())
}
