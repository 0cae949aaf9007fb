package watermark

import "time"

// clock is what the Clocks passed in add up to.
type clock struct {
	wall    Time
	mono    time.Duration
	backlog bool // from the last Clock on
	// quiet is the time since the last batch with rows, without backlogs.
	quiet time.Duration
	// run is the time since the start without backlogs, runSettled the same when there
	// was last no backlog: in a backlog nobody's time runs out.
	run, runSettled time.Duration
}

func startClock(start Clock) clock {
	return clock{wall: start.Wall, mono: start.Mono, backlog: start.Backlog}
}

// read takes the next Clock in.
func (c *clock) read(now Clock) {
	if passed := now.Mono - c.mono; passed > 0 {
		c.mono = now.Mono
		if !c.backlog {
			c.quiet = later(c.quiet, passed)
			c.run = later(c.run, passed)
		}
	}
	c.wall = now.Wall
	c.backlog = now.Backlog
	if !now.Backlog {
		c.runSettled = c.run
	}
}
