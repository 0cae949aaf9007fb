package windowing

import (
	"errors"
	"fmt"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// ErrCalendar says that sizes of the calendar do not fit together, or an offset.
var ErrCalendar = errors.New("not on the calendar")

// Calendar is a grid of windows in days and weeks, or in months, quarters and
// years, by the clock of a time zone. Windows start at 1970-01-01T00:00 local
// time (weeks at the Monday before) and every slide from there, moved by an
// offset on the local clock. A day on which the clock is changed has 23 or 25
// hours; a boundary that the clock skips is the first instant after it, one that
// it shows twice is the first of the two.
//
// The days, or months, are numbered from 1970 on; windows and slices are those
// of a sliding grid over the numbers.
type Calendar struct {
	size, slide CalendarSize
	offset      time.Duration
	zone        *time.Location
	hop         hop
	align       int64 // number of the first start
	recent      [64]boundary
}

// boundary is when a day or month begins.
type boundary struct {
	number int64
	at     watermark.Time // watermark.Unset: not known
}

// NewCalendar makes a grid; tumbling windows have slide equal to size. Both are
// in days and weeks or both in months, quarters and years (ErrCalendar); slide is
// at most size (ErrSlide); the offset, which may be negative, is shorter than one
// unit of the slide (ErrCalendar).
func NewCalendar(size, slide CalendarSize, offset time.Duration, zone *time.Location) (*Calendar, error) {
	if size.months() != slide.months() {
		return nil, fmt.Errorf("size %s and slide %s: %w: use days and weeks for both, or months, quarters and years for both", size, slide, ErrCalendar)
	}
	if err := checkSlide(size.length(), slide.length(), size.String(), slide.String()); err != nil {
		return nil, err
	}
	if shortest := calendarUnits[slide.Unit].shortest; offset <= -shortest || offset >= shortest {
		return nil, fmt.Errorf("offset %s: %w: it is local clock time there and must be shorter than one unit (%s, at least %s)", offset, ErrCalendar, CalendarSize{1, slide.Unit}, shortest)
	}
	c := &Calendar{size: size, slide: slide, offset: offset, zone: zone, hop: hop{size: size.length(), slide: slide.length()}}
	if slide.Unit == Week {
		c.align = -3 // 1970-01-01 was a Thursday
	}
	for i := range c.recent {
		c.recent[i].at = watermark.Unset
	}
	return c, nil
}

// Slice gives the slice that contains t.
func (c *Calendar) Slice(t watermark.Time) Span {
	n := c.number(t)
	before, length := c.hop.slice(c.into(n))
	return Span{Start: c.begin(n - before), End: c.begin(n - before + length)}
}

// into is the distance of a number from the last start at or before it.
func (c *Calendar) into(n int64) int64 {
	return int64(floorMod(watermark.Time(n-c.align), watermark.Time(c.hop.slide)))
}

// Next gives the first window behind another one that contains the slice.
func (c *Calendar) Next(slice, after Span) (window Span, ok bool) {
	n := c.number(slice.Start)
	d := c.into(n)
	var before int64
	if after.End < watermark.EndOfTime {
		before, ok = c.hop.ending(d, c.gap(n, slice.Start, after.End))
	} else {
		// Windows beyond the largest event time end at the same instant here, so
		// that their starts decide.
		if after.Start >= slice.Start {
			return Span{}, false
		}
		before, ok = c.hop.starting(d, uint64(c.number(watermark.Max)-n), uint64(n-c.number(after.Start)))
	}
	for ; ok && before >= 0; before -= c.hop.slide {
		window = Span{Start: c.begin(n - before), End: c.begin(n - before + c.hop.size)}
		if window.Compare(after) > 0 {
			return window, true
		}
	}
	return Span{}, false
}

// gap says how many days or months behind n lies the last one that begins before
// an instant: windows may end with the ones behind it. Where a whole day is
// skipped two of them begin at once.
func (c *Calendar) gap(n int64, from, end watermark.Time) uint64 {
	if end <= from {
		return 0
	}
	last := c.number(end)
	for last > n && c.begin(last) == end {
		last--
	}
	return uint64(last - n)
}

// Settings gives sizes, offset and zone.
func (c *Calendar) Settings() []Setting {
	settings := []Setting{{Field: "size", Value: c.size.String()}}
	if c.slide != c.size {
		settings = append(settings, Setting{Field: "slide", Value: c.slide.String()})
	}
	return append(settings, Setting{Field: "offset", Value: c.offset.String()}, Setting{Field: "timezone", Value: c.zone.String()})
}

const (
	secondsPerDay = 24 * 60 * 60
	// farthest is how far local clocks are from UTC at most, and more.
	farthest = 26 * 60 * 60
)

// number gives the last day or month that begins at or before t, an event time.
func (c *Calendar) number(t watermark.Time) int64 {
	second, _ := split(t)
	shift, _ := split(watermark.Time(c.offset))
	n := floorDiv(second-shift, secondsPerDay)
	if c.slide.months() {
		year, month, _ := time.Unix(second-shift, 0).UTC().Date()
		n = int64(year-1970)*12 + int64(month-time.January)
	}
	for c.begin(n) > t {
		n--
	}
	for c.begin(n+1) <= t {
		n++
	}
	return n
}

// begin gives the instant at which a day or month begins, cut to the range of
// event time as the bounds of a Span are.
func (c *Calendar) begin(n int64) watermark.Time {
	b := &c.recent[uint64(n)%uint64(len(c.recent))]
	if b.number != n || b.at == watermark.Unset {
		*b = boundary{number: n, at: c.find(n)}
	}
	return b.at
}

func (c *Calendar) find(n int64) watermark.Time {
	day := n * secondsPerDay
	if c.slide.months() {
		day = time.Date(1970, time.January+time.Month(n), 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	shift, rest := split(watermark.Time(c.offset))
	return join(c.instant(day+shift, rest))
}

// instant gives the first instant at which the local clock shows a time or a
// later one. The time is in seconds since 1970-01-01T00:00 of that clock, and
// nanoseconds.
func (c *Calendar) instant(clock, rest int64) (second, nanosecond int64) {
	at := time.Unix(clock-farthest, 0).In(c.zone)
	for {
		_, offset := at.Zone()
		from, to := at.ZoneBounds()
		// Beyond the table of a zone the library ends every year after 365 days: of
		// the last day of a leap year it says that it is over.
		if !to.IsZero() && !to.After(at) {
			to = at.Add(dayHours)
		}
		second = clock - int64(offset)
		if !from.IsZero() && second < from.Unix() {
			return from.Unix(), 0 // skipped by the change of the clock
		}
		if to.IsZero() || second < to.Unix() {
			return second, rest
		}
		at = to
	}
}

// split gives whole seconds, rounded down, and nanoseconds.
func split(t watermark.Time) (second, nanosecond int64) {
	return floorDiv(int64(t), int64(time.Second)), int64(floorMod(t, watermark.Time(time.Second)))
}

// join is the reverse of split, cut to the range of spans.
func join(second, nanosecond int64) watermark.Time {
	low, lowRest := split(watermark.Min)
	high, highRest := split(watermark.Max)
	switch {
	case second < low || second == low && nanosecond < lowRest:
		return watermark.Min
	case second > high || second == high && nanosecond > highRest:
		return watermark.EndOfTime
	case second < 0: // -9223372037 seconds alone are out of range
		return watermark.Time((second+1)*int64(time.Second) + nanosecond - int64(time.Second))
	}
	return watermark.Time(second*int64(time.Second) + nanosecond)
}

// floorDiv is the division that rounds down, b > 0.
func floorDiv(a, b int64) int64 {
	if a%b < 0 {
		return a/b - 1
	}
	return a / b
}
