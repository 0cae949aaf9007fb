package processors

import (
	"sync/atomic"

	"github.com/connect-windowed/connect-windowed/windowing/host"
)

var (
	systemClock = host.SystemClock()
	testClock   atomic.Pointer[host.Clock]
)

// SetClockForTest makes components that are constructed from now on follow c
// instead of the machine's clock, until restore is called. It is for tests of
// idle and start-up rules; waits for disks and outputs follow real time all the
// same. It is safe for concurrent use, but one clock serves the whole process.
func SetClockForTest(c host.Clock) (restore func()) {
	old := testClock.Swap(&c)
	return func() { testClock.Store(old) }
}

// clock is the clock of a component under construction.
func clock() host.Clock {
	if c := testClock.Load(); c != nil {
		return *c
	}
	return systemClock
}
