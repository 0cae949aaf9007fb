package watermark

import (
	"encoding/binary"
	"time"
)

// RFC3339Reader reads times as ParseRFC3339 does, faster where they are in UTC and
// have the date of the one before. Its zero value is ready. It must not be used by
// several goroutines at once.
type RFC3339Reader struct {
	// The date of the last text, as its first eight bytes and the eight from the third
	// on, and when it began. Zero: none yet. No day that Min or Max cuts short is
	// remembered.
	year, month uint64
	midnight    Time
}

// The parts of 2006-01-02T15:04:05Z.
const (
	clockAt    = len("2006-01-02T")
	fractionAt = len("2006-01-02T15:04:05")
	shortest   = len("2006-01-02T15:04:05Z")
)

// Parse is ParseRFC3339.
func (r *RFC3339Reader) Parse(text string) (Time, error) {
	if len(text) >= shortest && text[len(text)-1] == 'Z' {
		if t, ok := r.sameDay(text); ok {
			return t, nil
		}
	}
	t, err := ParseRFC3339(text)
	if err == nil && text[len(text)-1] == 'Z' && t > Min.Add(day) && t < Max.Add(-day) {
		r.year, r.month = word(text, 0), word(text, 2)
		r.midnight = t - Time(floorMod(int64(t), int64(day)))
	}
	return t, err
}

const day = secondsPerDay * time.Second

// sameDay reads a text of at least the shortest length that ends in Z, if it has the
// date that is remembered and nothing is wrong with it.
func (r *RFC3339Reader) sameDay(text string) (Time, bool) {
	if r.year == 0 || word(text, 0) != r.year || word(text, 2) != r.month || text[clockAt-1] != 'T' {
		return Unset, false
	}
	seconds, ok := clockSeconds(word(text, clockAt))
	if !ok {
		return Unset, false
	}
	nanos, digits := int64(0), text[fractionAt:len(text)-1]
	if digits != "" {
		if n := len(digits) - 1; digits[0] != '.' || n == 0 || n >= len(scales) {
			return Unset, false
		}
		for _, c := range []byte(digits[1:]) {
			if !isDigit(c) {
				return Unset, false
			}
			nanos = nanos*10 + int64(c-'0')
		}
		nanos *= scales[len(digits)-1]
	}
	return r.midnight + Time(seconds*int64(time.Second)+nanos), true
}

// scales make billionths of that many decimals.
var scales = [...]int64{1e9, 1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1e0}

// word gives eight bytes of a text, the first one lowest.
func word(text string, at int) uint64 {
	var b [8]byte
	copy(b[:], text[at:at+8])
	return binary.LittleEndian.Uint64(b[:])
}

// clockSeconds reads 15:04:05 from a word, all digits side by side.
func clockSeconds(w uint64) (seconds int64, ok bool) {
	const (
		zero  = 0x3030_3a30_303a_3030 // 00:00:00, the last digit highest
		above = 0x767a_7f76_7a7f_767d // lifts what is more than 29:59:59 has there beyond 0x7f
		highs = 0x8080_8080_8080_8080
	)
	w ^= zero
	if (w|(w+above))&highs != 0 {
		return 0, false
	}
	w = w*10 + w>>8 // no byte overflows
	hour := w & 0xff
	return int64(hour*3600 + w>>24&0xff*60 + w>>48&0xff), hour < 24
}
