package watermark

import "fmt"

// ParseRFC3339 reads an RFC 3339 date-time: an upper-case T, a zone (Z or a numeric
// offset), a full stop before any number of decimals, of which those beyond the ninth
// are cut (that is floored: they are added to the second). It does not keep s and does
// not allocate unless it fails.
//
// It accepts a subset of what time.Parse(time.RFC3339Nano) does and gives the same
// instant. Refused, because RFC 3339 does: a decimal comma, an hour of one digit, zone
// offsets beyond 23:59. Refused as by time.Parse: a lower-case t or z, a leap second
// (:60), a missing T or zone; a zone-less time would otherwise depend on the machine.
//
// Errors wrap ErrMalformed, or ErrRange outside [Min, Max].
func ParseRFC3339[S ~string | ~[]byte](s S) (Time, error) {
	d, fault := scan(s)
	if fault != "" {
		return Unset, malformed(s, fault)
	}
	// The years of [Min, Max]; the ends are judged below, to the nanosecond.
	if d.year >= 1677 && d.year <= 2262 {
		sec := dayNumber(d.year, d.month, d.day)*secondsPerDay + int64(d.second-d.offset)
		if t, ok := fromSeconds(sec, d.nanos); ok {
			return t, nil
		}
	}
	return Unset, fmt.Errorf("%w: %q is not between %s and %s", ErrRange, clip(s), Min, Max)
}

// dateTime is what an RFC 3339 text says, checked but not put together.
type dateTime struct {
	year, month, day int
	second           int   // of the local day
	nanos            int64 // of the second
	offset           int   // seconds east of UTC
}

// Faults that scan reports.
const (
	faultShape  = "it has another shape"
	faultDate   = "there is no such date"
	faultClock  = "there is no such time of day"
	faultLeap   = "a leap second has no place in a count of seconds"
	faultZone   = "it has no zone, and the zone of this machine must not decide"
	faultOffset = "its zone offset is not between -23:59 and +23:59"
)

// scan reads all of s. The fault is empty when s is an RFC 3339 date-time of any year.
func scan[S ~string | ~[]byte](s S) (d dateTime, fault string) {
	const bare = len("2006-01-02T15:04:05")
	if len(s) < bare || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return d, faultShape
	}
	century, year, month, day := two(s, 0), two(s, 2), two(s, 5), two(s, 8)
	hour, minute, second := two(s, 11), two(s, 14), two(s, 17)
	if (century | year | month | day | hour | minute | second) < 0 {
		return d, faultShape
	}
	d.year, d.month, d.day = century*100+year, month, day
	d.second = hour*3600 + minute*60 + second
	switch {
	case month < 1 || month > 12 || day < 1 || day > daysIn(d.year, month):
		return d, faultDate
	case second == 60 && minute < 60 && hour < 24:
		return d, faultLeap
	case hour > 23 || minute > 59 || second > 59:
		return d, faultClock
	}
	at := bare
	if at < len(s) && s[at] == '.' {
		if d.nanos, at = fraction(s, at+1); at < 0 {
			return d, faultShape
		}
	}
	d.offset, fault = zone(s, at)
	return d, fault
}

// fraction reads decimals from at on and returns them as billionths, with the place
// after them, or -1 when there is no digit.
func fraction[S ~string | ~[]byte](s S, at int) (nanos int64, end int) {
	scale := int64(100_000_000)
	for end = at; end < len(s) && isDigit(s[end]); end++ {
		nanos += int64(s[end]-'0') * scale
		scale /= 10
	}
	if end == at {
		return 0, -1
	}
	return nanos, end
}

// zone reads the zone, which must be all that is left of s.
func zone[S ~string | ~[]byte](s S, at int) (offset int, fault string) {
	switch len(s) - at {
	case 0:
		return 0, faultZone
	case len("Z"):
		if s[at] == 'Z' {
			return 0, ""
		}
	case len("+00:00"):
		hour, minute := two(s, at+1), two(s, at+4)
		if (s[at] != '+' && s[at] != '-') || s[at+3] != ':' || (hour|minute) < 0 {
			return 0, faultShape
		}
		if hour > 23 || minute > 59 {
			return 0, faultOffset
		}
		offset = hour*3600 + minute*60
		if s[at] == '-' {
			offset = -offset
		}
		return offset, ""
	}
	return 0, faultShape
}

// two reads two digits, negative when they are none.
func two[S ~string | ~[]byte](s S, at int) int {
	high, low := s[at]-'0', s[at+1]-'0'
	if high > 9 || low > 9 {
		return -1
	}
	return int(high)*10 + int(low)
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// malformed builds the error for a text, with the remedy for what it looks like.
func malformed[S ~string | ~[]byte](s S, fault string) error {
	remedy := "read other formats in the expression, as with ts_strptime"
	if _, err := parseDecimal(s, Second); err == nil {
		fault, remedy = "it is a number in a string", "convert it in the expression with number()"
	}
	return fmt.Errorf("%w: %q is no RFC 3339 time like 2006-01-02T15:04:05.999Z or 2006-01-02T15:04:05+01:00: %s; %s",
		ErrMalformed, clip(s), fault, remedy)
}
