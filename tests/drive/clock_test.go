package drive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClockWakesWhoIsDue(t *testing.T) {
	start := time.Unix(1000, 0)
	c := NewClock(start)
	due := func(ready <-chan time.Time) bool {
		select {
		case <-ready:
			return true
		default:
			return false
		}
	}
	at := c.Mono() + time.Second
	early, release := c.Until(at)
	_, gone := c.Until(at)
	gone()
	require.Equal(t, 1, c.Waiting())
	c.StepWall(time.Hour)
	c.Advance(time.Second - 1)
	require.False(t, due(early))
	c.Advance(1)
	require.True(t, due(early))
	release()
	require.Zero(t, c.Waiting())
	passed, _ := c.Until(c.Mono())
	require.True(t, due(passed))
	require.EqualValues(t, start.Add(time.Hour+time.Second).UnixNano(), c.Wall())
}
