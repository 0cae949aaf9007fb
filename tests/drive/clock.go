package drive

import (
	"sync"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// Clock is a clock that only the test moves. It is a host.Clock.
type Clock struct {
	mu      sync.Mutex // protects the fields below
	wall    time.Time
	mono    time.Duration
	waiters map[*waiter]bool
}

type waiter struct {
	at    time.Duration
	ready chan time.Time
}

// NewClock makes a clock that stands at the given time.
func NewClock(wall time.Time) *Clock {
	return &Clock{wall: wall, mono: time.Hour, waiters: map[*waiter]bool{}}
}

// Wall implements host.Clock.
func (c *Clock) Wall() watermark.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := watermark.FromStd(c.wall)
	if err != nil {
		panic(err)
	}
	return t
}

// Mono implements host.Clock.
func (c *Clock) Mono() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mono
}

// Until implements host.Clock.
func (c *Clock) Until(at time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &waiter{at: at, ready: make(chan time.Time, 1)}
	if at <= c.mono {
		w.ready <- c.wall
		return w.ready, func() {}
	}
	c.waiters[w] = true
	return w.ready, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiters, w)
	}
}

// Advance lets time pass: both the wall clock and the monotonic one move.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.mono = c.wall.Add(d), c.mono+d
	for w := range c.waiters {
		if w.at <= c.mono {
			w.ready <- c.wall
			delete(c.waiters, w)
		}
	}
}

// StepWall moves the wall clock alone, as an operator or NTP does.
func (c *Clock) StepWall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

// Waiting counts those who wait for the clock.
func (c *Clock) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiters)
}
