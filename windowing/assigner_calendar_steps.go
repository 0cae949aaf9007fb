package windowing

import (
	"fmt"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// CalendarCumulative is the grid of windows that grow by step within a size of the
// calendar, then start anew. A step is either one of the calendar, whose ends are
// those of days or months on the local clock, or a duration, counted from the start
// of the size. The last step ends where the size ends: on a day of 23 hours steps of
// an hour are 23, and the last of four steps of six hours has five; on one of 25
// hours a fifth step has one.
type CalendarCumulative struct {
	size  *Calendar
	steps *Calendar      // of single days or months, nil: length counts
	count int64          // days or months in a step
	fixed watermark.Time // the step, where steps is nil
	text  string         // the step as the user wrote it
}

// NewCalendarCumulative makes a grid with steps of the calendar. A step divides the
// size (ErrSlide): days and weeks divide days and weeks; months, quarters and years
// one another; a single day all of them. The offset is as for NewCalendar.
func NewCalendarCumulative(size, step CalendarSize, offset time.Duration, zone *time.Location) (*CalendarCumulative, error) {
	c, err := newCalendarCumulative(size, offset, zone, step.String())
	if err != nil {
		return nil, err
	}
	c.count = step.length()
	switch {
	case size.months() == step.months() && size.length()%step.length() == 0:
	case size.months() && !step.months() && step.length() == 1:
	default:
		return nil, fmt.Errorf("size %s is not a multiple of step %s: %w: the last window would stop short; use a step that divides the size, or 1d", size, step, ErrSlide)
	}
	unit := CalendarSize{Count: 1, Unit: Day}
	if step.months() {
		unit.Unit = Month
	} else { // the start of a month or of a week is that of one of its days
		offset = time.Duration(floorMod(watermark.Time(offset), watermark.Time(dayHours)))
	}
	c.steps, err = NewCalendar(unit, unit, offset, zone)
	return c, err
}

// NewCalendarSteps makes a grid whose steps are durations. A step divides a size in
// days and weeks, a day where the size is in months, quarters or years (ErrSlide);
// no window has more than 100000 steps (ErrSlide).
func NewCalendarSteps(size CalendarSize, step, offset time.Duration, zone *time.Location) (*CalendarCumulative, error) {
	c, err := newCalendarCumulative(size, offset, zone, step.String())
	if err != nil {
		return nil, err
	}
	c.fixed = watermark.Time(step)
	whole, days := dayHours, int64(1)
	if size.months() {
		days = size.length() * 31
	} else {
		whole *= time.Duration(size.length())
	}
	switch {
	case step <= 0:
		return nil, fmt.Errorf("step %s: %w: use a duration above 0, at most the size of %s", step, ErrSlide, size)
	case whole%step != 0:
		return nil, fmt.Errorf("step %s does not divide %s, as size %s needs: %w: the last window would stop short; use a step that does, such as 1h or 1d", step, whole, size, ErrSlide)
	case int64(whole/step)*days > MaxOverlap:
		return nil, fmt.Errorf("step %s with size %s puts a row into more than %d windows: %w: use a larger step", step, size, MaxOverlap, ErrSlide)
	}
	return c, nil
}

func newCalendarCumulative(size CalendarSize, offset time.Duration, zone *time.Location, step string) (*CalendarCumulative, error) {
	grid, err := NewCalendar(size, size, offset, zone)
	if err != nil {
		return nil, err
	}
	return &CalendarCumulative{size: grid, text: step}, nil
}

// Slice gives the step that contains t.
func (c *CalendarCumulative) Slice(t watermark.Time) Span {
	whole := c.size.Slice(t)
	s := Span{End: whole.End}
	if c.steps == nil {
		n := apart(whole.Start, t) / uint64(c.fixed)
		s.Start = watermark.Time(uint64(whole.Start) + n*uint64(c.fixed))
		if apart(s.Start, whole.End) > uint64(c.fixed) {
			s.End = s.Start + c.fixed
		}
		return s
	}
	first := c.first(whole)
	n := (c.steps.number(t) - first) / c.count
	s.Start = max(whole.Start, c.steps.begin(first+n*c.count))
	s.End = min(whole.End, c.steps.begin(first+(n+1)*c.count))
	return s
}

// first is the number of the first day or month of a size: of two that begin at
// once, because the clock skipped one of them, the former.
func (c *CalendarCumulative) first(whole Span) int64 {
	n := c.steps.number(whole.Start)
	for whole.Start > watermark.Min && c.steps.begin(n-1) == whole.Start {
		n--
	}
	return n
}

// Next gives the shortest window behind another one that contains the slice.
func (c *CalendarCumulative) Next(slice, after Span) (window Span, ok bool) {
	whole := c.size.Slice(slice.Start)
	window = Span{Start: whole.Start, End: slice.End}
	if after.End >= whole.End {
		window.End = whole.End
	} else if after.End >= slice.End {
		step := c.Slice(after.End)
		window.End = step.Start // which may be the end of the other one
		if window.Compare(after) <= 0 {
			window.End = step.End
		}
	}
	return window, window.Compare(after) > 0
}

// Settings gives size, step, offset and zone.
func (c *CalendarCumulative) Settings() []Setting {
	settings := c.size.Settings()
	return append(settings[:1:1], append([]Setting{{Field: "step", Value: c.text}}, settings[1:]...)...)
}
