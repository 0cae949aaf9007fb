package drive

import (
	"github.com/connect-windowed/connect-windowed/processors"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

var _ host.Clock = (*Clock)(nil)

// SetClock puts a clock into the product and gives the function that takes it out
// again.
func SetClock(c *Clock) (restore func()) { return processors.SetClockForTest(c) }
