package windowing

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

func testCalendar(t testing.TB, size, slide string, offset time.Duration, zone string) *Calendar {
	parse := func(text string) CalendarSize {
		s, ok, err := ParseCalendarSize(text)
		require.True(t, ok)
		require.NoError(t, err)
		return s
	}
	loc, err := time.LoadLocation(zone)
	require.NoError(t, err)
	c, err := NewCalendar(parse(size), parse(slide), offset, loc)
	require.NoError(t, err)
	return c
}

func at(t testing.TB, text string) watermark.Time {
	v, err := watermark.ParseRFC3339(text)
	require.NoError(t, err)
	return v
}

// TestCalendarWindows states windows that can be looked up.
func TestCalendarWindows(t *testing.T) {
	for _, c := range []struct {
		size   string
		offset time.Duration
		zone   string
		row    string
		start  string
		end    string
	}{
		{"1d", 0, "UTC", "2024-02-29T23:59:59.999999999Z", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"1d", 0, "Asia/Shanghai", "2024-01-01T16:00:00Z", "2024-01-01T16:00:00Z", "2024-01-02T16:00:00Z"},
		{"1d", 0, "Europe/Paris", "2024-06-01T10:00:00Z", "2024-05-31T22:00:00Z", "2024-06-01T22:00:00Z"},
		{"1d", 0, "America/New_York", "2024-03-10T12:00:00Z", "2024-03-10T05:00:00Z", "2024-03-11T04:00:00Z"}, // 23 hours
		{"1d", 0, "America/New_York", "2024-11-03T12:00:00Z", "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z"}, // 25 hours
		{"1d", 4 * time.Hour, "America/New_York", "2024-03-10T07:59:59Z", "2024-03-09T09:00:00Z", "2024-03-10T08:00:00Z"},
		{"1d", 2*time.Hour + 30*time.Minute, "America/New_York", "2024-03-10T07:00:00Z", "2024-03-10T07:00:00Z", "2024-03-11T06:30:00Z"}, // 02:30 is skipped: 03:00 EDT
		{"1d", time.Hour + 30*time.Minute, "America/New_York", "2024-11-03T05:30:00Z", "2024-11-03T05:30:00Z", "2024-11-04T06:30:00Z"},   // 01:30 twice: the first
		{"1d", 0, "America/Sao_Paulo", "2018-11-04T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},                           // midnight is skipped
		{"1d", 0, "America/Havana", "2024-11-03T04:30:00Z", "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z"},                              // midnight twice
		{"1d", 0, "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},                                // the 30th does not exist
		{"1d", 0, "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"1d", 0, "Australia/Lord_Howe", "2024-04-07T00:00:00Z", "2024-04-06T13:00:00Z", "2024-04-07T13:30:00Z"}, // 24 hours and a half
		{"1d", -2 * time.Hour, "UTC", "2024-01-01T22:00:00Z", "2024-01-01T22:00:00Z", "2024-01-02T22:00:00Z"},
		{"1d", 0, "UTC", "1969-12-31T23:00:00Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"3d", 0, "UTC", "1970-01-03T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-04T00:00:00Z"},
		{"1w", 0, "UTC", "2024-12-31T12:00:00Z", "2024-12-30T00:00:00Z", "2025-01-06T00:00:00Z"}, // week 1 of 2025
		{"1w", 0, "UTC", "1970-01-01T00:00:00Z", "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"},
		{"2w", 24 * time.Hour, "UTC", "1970-01-01T00:00:00Z", "1969-12-30T00:00:00Z", "1970-01-13T00:00:00Z"},
		{"1mo", 0, "Europe/Berlin", "2024-02-29T22:59:59Z", "2024-01-31T23:00:00Z", "2024-02-29T23:00:00Z"},
		{"1mo", 36 * time.Hour, "UTC", "2024-03-02T11:00:00Z", "2024-02-02T12:00:00Z", "2024-03-02T12:00:00Z"},
		{"1q", 0, "UTC", "2024-05-05T00:00:00Z", "2024-04-01T00:00:00Z", "2024-07-01T00:00:00Z"},
		{"1y", 0, "Asia/Tokyo", "2024-12-31T15:00:00Z", "2024-12-31T15:00:00Z", "2025-12-31T15:00:00Z"},
		{"10y", 0, "UTC", "1969-01-01T00:00:00Z", "1960-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
	} {
		grid := testCalendar(t, c.size, c.size, c.offset, c.zone)
		want := Span{at(t, c.start), at(t, c.end)}
		slice := grid.Slice(at(t, c.row))
		require.Equal(t, want, slice, "%s %s %s: %s is in [%s, %s)", c.size, c.offset, c.zone, c.row, slice.Start, slice.End)
		require.Equal(t, []Span{want}, windowsOf(grid, slice, endedBy(watermark.Unset)), "%+v", c)
	}
}

func TestCalendarSliding(t *testing.T) {
	grid := testCalendar(t, "7d", "1d", 0, "Europe/Paris")
	slice := grid.Slice(at(t, "2024-03-31T12:00:00Z"))
	require.Equal(t, 23*time.Hour, slice.End.Sub(slice.Start))
	windows := windowsOf(grid, slice, endedBy(watermark.Unset))
	require.Len(t, windows, 7)
	require.Equal(t, Span{at(t, "2024-03-24T23:00:00Z"), slice.End}, windows[0])
	require.Equal(t, Span{slice.Start, at(t, "2024-04-06T22:00:00Z")}, windows[6])

	// A quarter every two months: cuts at every month of which two are needed.
	grid = testCalendar(t, "1q", "2mo", 0, "UTC")
	require.Equal(t, Span{at(t, "1970-01-01T00:00:00Z"), at(t, "1970-02-01T00:00:00Z")}, grid.Slice(0))
	require.Len(t, windowsOf(grid, grid.Slice(0), endedBy(watermark.Unset)), 2)

	// The 30th does not exist: two windows end at once, and two start at once.
	grid = testCalendar(t, "2d", "1d", 0, "Pacific/Apia")
	windows = windowsOf(grid, grid.Slice(at(t, "2011-12-29T12:00:00Z")), endedBy(watermark.Unset))
	for i := 1; i < len(windows); i++ {
		require.Positive(t, windows[i].Compare(windows[i-1]))
	}
	require.Equal(t, []Span{
		{at(t, "2011-12-28T10:00:00Z"), at(t, "2011-12-30T10:00:00Z")}, {at(t, "2011-12-29T10:00:00Z"), at(t, "2011-12-30T10:00:00Z")},
	}, windows)
}

// TestCalendarEndsOfTime: bounds are cut there.
func TestCalendarEndsOfTime(t *testing.T) {
	for _, zone := range []string{"UTC", "Pacific/Kiritimati", "America/Los_Angeles"} {
		for _, size := range []string{"1d", "1w", "1mo", "1y"} {
			grid := testCalendar(t, size, size, 0, zone)
			first, last := grid.Slice(watermark.Min), grid.Slice(watermark.Max)
			require.Equal(t, watermark.Min, first.Start)
			require.Equal(t, watermark.EndOfTime, last.End)
			require.Equal(t, []Span{last}, windowsOf(grid, last, endedBy(watermark.Max)))
			require.Empty(t, windowsOf(grid, last, endedBy(watermark.EndOfTime)))
		}
		grid := testCalendar(t, "3d", "1d", 0, zone)
		windows := windowsOf(grid, grid.Slice(watermark.Max), endedBy(watermark.Unset))
		require.Len(t, windows, 3)
		for i, w := range windows {
			require.Equal(t, watermark.EndOfTime, w.End)
			require.True(t, i == 0 || w.Start > windows[i-1].Start)
		}
		require.Len(t, windowsOf(grid, grid.Slice(watermark.Min), endedBy(watermark.Unset)), 3)
	}
}

// TestCalendarAgainstClock compares with the definition: a day begins when the
// local clock first shows its hour or a later one.
func TestCalendarAgainstClock(t *testing.T) {
	seed := newSeed(t)
	r := rand.New(rand.NewPCG(seed, 3))
	zones := []string{"Europe/Paris", "America/New_York", "America/Sao_Paulo", "America/Havana", "Pacific/Apia",
		"Australia/Lord_Howe", "Africa/Casablanca", "Asia/Beirut", "Africa/Monrovia", "Asia/Manila", "America/Juneau", "Asia/Kathmandu"}
	for range 150 {
		zone := zones[r.IntN(len(zones))]
		offset := time.Duration(r.IntN(95)-47) * 15 * time.Minute
		grid := testCalendar(t, "1d", "1d", offset, zone)
		day := int64(r.IntN(75_000) - 45_000)
		clock := time.Unix(day*secondsPerDay, 0).Add(offset).Unix()
		first := clock - farthest
		for shown(first, grid.zone) < clock {
			first += min(60, max(1, clock-shown(first, grid.zone)))
		}
		for shown(first-1, grid.zone) >= clock { // a change of the clock in between
			first--
		}
		want := watermark.Time(first) * watermark.Time(time.Second)
		require.Equal(t, want, grid.begin(day), "seed %d: day %d %s %s", seed, day, zone, offset)
		require.Equal(t, grid.begin(day), grid.Slice(want).Start)
		if before := grid.Slice(want - 1); before.End != want {
			require.Equal(t, before.End, grid.begin(day), "seed %d: day %d %s", seed, day, zone)
		}
	}
}

// TestCalendarLastDayOfLeapYears: beyond the tables of zones too a year ends where
// the next one begins.
func TestCalendarLastDayOfLeapYears(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Tokyo"} {
		for _, size := range []string{"1d", "1w", "1mo", "1y"} {
			grid := testCalendar(t, size, size, 0, zone)
			for year := 2024; year < 2261; year++ {
				for _, day := range []string{"12-30T12:00:00Z", "12-31T00:00:00Z", "12-31T12:00:00Z"} {
					now := at(t, strconv.Itoa(year)+"-"+day)
					slice := grid.Slice(now)
					require.True(t, slice.Contains(now), "%s in %s: %d-%s", size, zone, year, day)
					start, end := slice.Start.Std().In(grid.zone), slice.End.Std().In(grid.zone)
					require.Equal(t, []int{0, 0, 0, 0}, []int{start.Hour(), start.Minute(), end.Hour(), end.Minute()}, "%s in %s: %d-%s %s", size, zone, year, day, end)
					if size == "1d" {
						require.Equal(t, start.AddDate(0, 0, 1), end, "%s: %d-%s", zone, year, day)
					}
				}
			}
		}
	}
}

// shown is what the local clock shows, as seconds since 1970-01-01T00:00 of it.
func shown(second int64, zone *time.Location) int64 {
	_, offset := time.Unix(second, 0).In(zone).Zone()
	return second + int64(offset)
}

func TestCalendarRefuses(t *testing.T) {
	for _, text := range []string{"0d", "-1d", "1.5d", "d", "99999999999999999999d", "250001d", "700y", "1 d"} {
		_, ok, err := ParseCalendarSize(text)
		require.True(t, ok, text)
		require.ErrorIs(t, err, ErrSize, text)
		require.ErrorContains(t, err, text)
	}
	for _, text := range []string{"", "5m", "24h", "1d12h", "1D", "week"} {
		_, ok, err := ParseCalendarSize(text)
		require.False(t, ok, text)
		require.NoError(t, err)
	}
	size := func(n int64, u CalendarUnit) CalendarSize { return CalendarSize{n, u} }
	for _, c := range []struct {
		size, slide CalendarSize
		offset      time.Duration
		want        error
	}{
		{size(1, Month), size(1, Day), 0, ErrCalendar},
		{size(1, Day), size(1, Week), 0, ErrSlide},
		{size(1, Day), size(1, Day), 24 * time.Hour, ErrCalendar},
		{size(3, Day), size(3, Day), -24 * time.Hour, ErrCalendar},
		{size(1, Month), size(1, Month), 28 * 24 * time.Hour, ErrCalendar},
		{size(1, Year), size(1, Quarter), 90 * 24 * time.Hour, ErrCalendar},
	} {
		_, err := NewCalendar(c.size, c.slide, c.offset, time.UTC)
		require.ErrorIs(t, err, c.want)
	}
	require.Equal(t, "3mo", size(3, Month).String())
}

func TestCalendarSettings(t *testing.T) {
	require.Equal(t, []Setting{{"size", "1d"}, {"offset", "4h0m0s"}, {"timezone", "Europe/Paris"}},
		testCalendar(t, "1d", "1d", 4*time.Hour, "Europe/Paris").Settings())
	require.Equal(t, []Setting{{"size", "1w"}, {"slide", "1d"}, {"offset", "0s"}, {"timezone", "UTC"}},
		testCalendar(t, "1w", "1d", 0, "UTC").Settings())
}

func BenchmarkCalendarSlice(b *testing.B) {
	grid := testCalendar(b, "1d", "1d", 0, "Europe/Paris")
	b.ReportAllocs()
	for i := range b.N {
		grid.Slice(watermark.Time(1_700_000_000_000_000_000 + int64(i%40)*secondsPerDay*1e9))
	}
}
