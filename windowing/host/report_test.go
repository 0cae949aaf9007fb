package host

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// What happens is counted under the operator's name, and the first of each kind is
// logged with what to do.
func TestMetrics(t *testing.T) {
	r := newRig(t, sums, func(c *Config) { c.StateSize = func() (int64, error) { return 4711, nil } })
	o := still(r)
	r.clock.wall = 100 * second
	step := func(from int64, notes ...*note) {
		o.take(events(from, notes...))
		o.work()
		o.wake = time.Time{}
		o.housekeep()
	}
	step(0, at(1, "a"), at(1, "b"))
	require.Empty(t, r.log.all())
	step(2, at(25, "a"))
	step(3, at(3, "late"), at(4, "late"))
	step(5, at(5, "late"))
	step(0, at(1, "a"), at(1, "b"))
	for name, want := range map[string]int64{
		LateRows + "/w": 3, RowsEmitted + "/w": 2, InvalidRows: 0, Redelivered: 2, Faults: 0,
	} {
		require.Equal(t, want, r.meter.count(name), name)
	}
	for name, want := range map[string]int64{
		OutboxRows: 2, StateBytes: 4711, Watermark + "wm": 25_000, WatermarkLag + "wm": 75_000, OpenWindows + "w": 1, Groups + "w": 1,
	} {
		require.Equal(t, want, r.meter.gauges[name], name)
	}
	log := r.log.all()
	require.Len(t, log, 1, "said once")
	require.Contains(t, log[0], "late: pass")
}

// Rows that a log for redeliveries could not hold are said once.
func TestTrimmedRepliesAreSaid(t *testing.T) {
	r := newRig(t, passes, func(c *Config) { c.Reply, c.Limits.LogBytes = true, 1 })
	o := still(r)
	for i := range int64(3) {
		o.take(events(i, at(i, "a")))
		o.work()
		o.wake = time.Time{}
		o.housekeep()
	}
	require.Equal(t, 1, strings.Count(strings.Join(r.log.all(), "\n"), "position_horizon"))
}

// The machine's clock.
func TestSystemClock(t *testing.T) {
	c := SystemClock()
	wall, err := watermark.FromStd(time.Now())
	require.NoError(t, err)
	require.Less(t, c.Wall().Sub(wall).Abs(), time.Minute)
	before := c.Mono()
	ready, release := c.Until(before + time.Millisecond)
	<-ready
	release()
	require.GreaterOrEqual(t, c.Mono(), before+time.Millisecond)
	past, release := c.Until(0)
	<-past
	release()
	_, release = c.Until(time.Duration(1<<63 - 1))
	release()
}
