package windowing

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// CalendarUnit is a unit of the calendar, whose length in seconds varies.
type CalendarUnit uint8

// The units of the calendar. Weeks are ISO weeks, which start on Monday.
const (
	Day CalendarUnit = iota
	Week
	Month
	Quarter
	Year
)

const dayHours = 24 * time.Hour

// calendarUnits says of each unit how it is written, how many days or months it
// has, and how short it can be, without changes of the clock.
var calendarUnits = [...]struct {
	suffix   string
	months   bool
	length   int64 // in days or months
	shortest time.Duration
}{
	Day:     {"d", false, 1, dayHours},
	Week:    {"w", false, 7, 7 * dayHours},
	Month:   {"mo", true, 1, 28 * dayHours},
	Quarter: {"q", true, 3, 90 * dayHours},
	Year:    {"y", true, 12, 365 * dayHours},
}

// CalendarSize is a number of units of the calendar.
type CalendarSize struct {
	Count int64
	Unit  CalendarUnit
}

// Event time spans 584 years: no size exceeds it.
const (
	mostDays   = 213_500
	mostMonths = 7_000
)

// ParseCalendarSize reads a size such as 1d, 2w, 1mo, 1q or 1y; ok is false where
// the text has none of these units. The error wraps ErrSize: a count is a whole
// number from 1 on, and no size exceeds all of event time.
func ParseCalendarSize(text string) (size CalendarSize, ok bool, err error) {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	for unit, u := range calendarUnits {
		if text[len(number):] != u.suffix {
			continue
		}
		most := mostDays / u.length
		if u.months {
			most = mostMonths / u.length
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 || n > most {
			return size, true, fmt.Errorf("%q: %w: use a whole number of %s from 1 to %d, such as 1%s", text, ErrSize, u.suffix, most, u.suffix)
		}
		return CalendarSize{Count: n, Unit: CalendarUnit(unit)}, true, nil
	}
	return size, false, nil
}

// String writes the size as ParseCalendarSize reads it.
func (s CalendarSize) String() string {
	return strconv.FormatInt(s.Count, 10) + calendarUnits[s.Unit].suffix
}

// length is the size in days or months.
func (s CalendarSize) length() int64 { return s.Count * calendarUnits[s.Unit].length }

// months says that the size counts in months.
func (s CalendarSize) months() bool { return calendarUnits[s.Unit].months }
