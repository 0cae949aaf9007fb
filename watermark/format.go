package watermark

// Names of the watermarks that are no event times.
const (
	unsetText = "unset"
	endText   = "end of time"
)

// String is AppendRFC3339 as a string.
func (t Time) String() string {
	switch t {
	case Unset:
		return unsetText
	case EndOfTime:
		return endText
	}
	var b [len("2006-01-02T15:04:05.999999999Z")]byte
	return string(t.AppendRFC3339(b[:0]))
}

// AppendRFC3339 appends t as RFC 3339 in UTC with up to 9 decimals, trailing zeros cut:
// the text of time.RFC3339Nano. Unset appends "unset" and EndOfTime "end of time", which
// no parser takes for a time.
func (t Time) AppendRFC3339(b []byte) []byte {
	switch t {
	case Unset:
		return append(b, unsetText...)
	case EndOfTime:
		return append(b, endText...)
	}
	sec, ns := t.split()
	ofDay := int(floorMod(sec, secondsPerDay))
	year, month, day := civil((sec - int64(ofDay)) / secondsPerDay)

	b = appendTwo(b, year/100)
	b = appendTwo(b, year%100)
	b = appendTwo(append(b, '-'), month)
	b = appendTwo(append(b, '-'), day)
	b = appendTwo(append(b, 'T'), ofDay/3600)
	b = appendTwo(append(b, ':'), ofDay/60%60)
	b = appendTwo(append(b, ':'), ofDay%60)
	if ns > 0 {
		b = appendFraction(append(b, '.'), ns)
	}
	return append(b, 'Z')
}

// appendFraction appends 1 to 999999999 billionths without their trailing zeros.
func appendFraction(b []byte, ns int64) []byte {
	var digits [9]byte
	used := 0
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + ns%10)
		if digits[i] != '0' && used == 0 {
			used = i + 1
		}
		ns /= 10
	}
	return append(b, digits[:used]...)
}

func appendTwo(b []byte, n int) []byte {
	return append(b, byte('0'+n/10), byte('0'+n%10))
}

const secondsPerDay = 24 * 60 * 60

// The proleptic Gregorian calendar by whole days since 1970-01-01, after Howard
// Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2013): a year that starts in
// March has its leap day at the end, and 400 years have daysPerEra days.
const (
	daysPerEra = 146097
	daysTo1970 = 719468 // from 0000-03-01
)

// civil gives the date of a day, right for years 0 and later.
func civil(days int64) (year, month, day int) {
	z := int(days) + daysTo1970
	era := z / daysPerEra
	doe := z % daysPerEra
	yoe := (doe - doe/1460 + doe/36524 - doe/(daysPerEra-1)) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	shifted := (5*doy + 2) / 153 // months since March
	day = doy - (153*shifted+2)/5 + 1
	year, month = era*400+yoe, shifted+3
	if month > 12 {
		year, month = year+1, month-12
	}
	return year, month, day
}

// dayNumber gives the day of a date, for years 1 and later.
func dayNumber(year, month, day int) int64 {
	shifted := month - 3
	if month < 3 {
		year--
		shifted = month + 9
	}
	yoe := year % 400
	doy := (153*shifted+2)/5 + day - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return int64(year/400*daysPerEra + doe - daysTo1970)
}

// daysIn is the number of days of a month, 1 to 12.
func daysIn(year, month int) int {
	switch {
	case month != 2:
		return 30 + (month+month/8)&1
	case year%4 == 0 && (year%100 != 0 || year%400 == 0):
		return 29
	}
	return 28
}
