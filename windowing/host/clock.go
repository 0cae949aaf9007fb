package host

import (
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// Clock gives the host the time that event time is compared with. Waits for
// disks and outputs follow real time.
type Clock interface {
	// Wall is the wall clock.
	Wall() watermark.Time
	// Mono only grows and starts anywhere.
	Mono() time.Duration
	// Until gives a channel that is ready once Mono has reached at, and a
	// function that releases it.
	Until(at time.Duration) (<-chan time.Time, func())
}

// SystemClock is the machine's clock. Its Mono starts with the first use.
func SystemClock() Clock { return systemClock{start: time.Now()} }

type systemClock struct{ start time.Time }

func (c systemClock) Wall() watermark.Time {
	t, err := watermark.FromStd(time.Now())
	if err != nil { // a machine whose clock stands beyond 2262
		return watermark.Max
	}
	return t
}

func (c systemClock) Mono() time.Duration { return time.Since(c.start) }

func (c systemClock) Until(at time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(max(at-c.Mono(), 0))
	return t.C, func() { t.Stop() }
}
