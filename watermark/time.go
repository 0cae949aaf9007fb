package watermark

import (
	"fmt"
	"math"
	"time"
)

// Time is an event time: nanoseconds since 1970-01-01T00:00:00Z, without leap seconds.
// Event times lie in [Min, Max]; Unset and EndOfTime are watermarks only.
type Time int64

const (
	// Unset is the watermark before there is one. It is below every event time, so that
	// nothing is late and nothing closes.
	Unset Time = math.MinInt64
	// Min is the smallest event time, 1677-09-21T00:12:43.145224193Z.
	Min Time = math.MinInt64 + 1
	// Max is the largest event time, 2262-04-11T23:47:16.854775806Z.
	Max Time = math.MaxInt64 - 1
	// EndOfTime is the watermark that closes everything. It is above every event time.
	EndOfTime Time = math.MaxInt64
)

// Add returns t+d, saturating at Min and Max. Unset and EndOfTime stay what they are.
func (t Time) Add(d time.Duration) Time {
	if t == Unset || t == EndOfTime {
		return t
	}
	sum := t + Time(d)
	switch {
	case d > 0 && (sum < t || sum > Max):
		return Max
	case d < 0 && (sum > t || sum < Min):
		return Min
	}
	return sum
}

// Sub returns t-u, saturating at the largest and smallest duration (292 years).
func (t Time) Sub(u Time) time.Duration {
	d := t - u
	switch {
	case u < 0 && d < t:
		return math.MaxInt64
	case u > 0 && d > t:
		return math.MinInt64
	}
	return time.Duration(d)
}

// Floor returns the largest k*size+offset (k any integer) that is not above t: the
// start of the window of t among windows of that size, also before 1970. size must be
// positive; offset may be any duration and counts modulo size. A start below Min
// saturates there, so the first window of all is cut short. Unset and EndOfTime stay
// what they are.
func (t Time) Floor(size, offset time.Duration) Time {
	if size <= 0 {
		panic(fmt.Sprintf("watermark: Floor to a size of %d ns: a size is positive", int64(size)))
	}
	if t == Unset || t == EndOfTime {
		return t
	}
	// Both remainders lie in [0, size), so neither difference can overflow.
	rest := floorMod(int64(t), int64(size)) - floorMod(int64(offset), int64(size))
	if rest < 0 {
		rest += int64(size)
	}
	return t.Add(-time.Duration(rest))
}

// Std returns t as a time.Time in UTC. Unset and EndOfTime become the instants one
// nanosecond beyond Min and Max.
func (t Time) Std() time.Time {
	sec, ns := t.split()
	return time.Unix(sec, ns).UTC()
}

// FromStd converts a time.Time. It wraps ErrRange outside [Min, Max].
func FromStd(std time.Time) (Time, error) {
	t, ok := fromSeconds(std.Unix(), int64(std.Nanosecond()))
	if !ok {
		return Unset, fmt.Errorf("%w: %s is not between %s and %s",
			ErrRange, std.UTC().Format(time.RFC3339Nano), Min, Max)
	}
	return t, nil
}

// split gives whole seconds, floored, and the nanoseconds above them, 0 to 999999999.
func (t Time) split() (sec, ns int64) {
	ns = floorMod(int64(t), int64(time.Second))
	sec = int64(t) / int64(time.Second)
	if t < 0 && ns > 0 {
		sec--
	}
	return sec, ns
}

// fromSeconds is sec seconds and ns nanoseconds (0 to 999999999), false when that is no
// event time.
func fromSeconds(sec, ns int64) (Time, bool) {
	if sec < 0 && ns > 0 {
		// Towards zero first: the floored second of Min is below the range of int64.
		sec++
		ns -= int64(time.Second)
	}
	const limit = math.MaxInt64 / int64(time.Second)
	if sec < -limit || sec > limit {
		return Unset, false
	}
	whole := sec * int64(time.Second)
	t := Time(whole + ns)
	if (ns > 0 && int64(t) < whole) || (ns < 0 && int64(t) > whole) || t < Min || t > Max {
		return Unset, false
	}
	return t, true
}

// floorMod is a modulo m for m > 0, always in [0, m).
func floorMod(a, m int64) int64 {
	r := a % m
	if r < 0 {
		r += m
	}
	return r
}

// later is a point of a monotonic clock plus a span, saturating.
func later(at, span time.Duration) time.Duration {
	if span > 0 && at > math.MaxInt64-span {
		return math.MaxInt64
	}
	return at + span
}
