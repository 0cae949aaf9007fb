package watermark

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// talk is a Frontier at one monotonic time, to which partitions speak in seconds.
type talk struct {
	*Frontier
	now Clock
}

func newTalk(policy Policy, idle time.Duration) *talk {
	now := Clock{Mono: time.Hour}
	return &talk{NewFrontier(Config{Policy: policy, Sources: []SourceConfig{{Name: "a", IdleTimeout: idle}}}, now), now}
}

func (k *talk) say(partition string, second int) {
	k.Observe(0, partition, Time(second)*Time(time.Second))
	k.now.Mono += time.Millisecond
	k.Advance(k.now)
}

func (k *talk) w() int { return int(k.Watermark() / Time(time.Second)) }

func (k *talk) tick() {
	k.now.Mono += time.Millisecond
	k.Tick(k.now)
}

func TestAway(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprint(idle), func(t *testing.T) {
			k := newTalk(PolicyMin, idle)
			k.say("p", 10)
			k.say("q", 20)
			require.Equal(t, 10, k.w())
			require.False(t, k.Away("r"), "nobody has heard of it")
			require.True(t, k.Away("p"))
			at, ok := k.Deadline()
			require.True(t, ok)
			require.LessOrEqual(t, at, k.now.Mono, "a tick is due")
			k.tick()
			require.Equal(t, 20, k.w(), "what is away does not hold W back")
			k.say("q", 30)
			require.Equal(t, 30, k.w())

			k.Back("p")
			k.Back("q") // was never away
			k.say("q", 40)
			require.Equal(t, 30, k.w(), "it is active again, and W does not go back")
			k.say("p", 35)
			require.Equal(t, 35, k.w())

			k.Away("p")
			k.say("p", 36) // it speaks, so it is here
			k.say("q", 50)
			require.Equal(t, 36, k.w())

			k.Away("p")
			k.Away("q")
			k.tick()
			require.Equal(t, 36, k.w(), "nobody is active")
			k.say("q", 60)
			require.Equal(t, 60, k.w())
		})
	}
}

// Under policy max the partition that is ahead no longer decides, and W stays.
func TestAwayOfTheFastest(t *testing.T) {
	k := newTalk(PolicyMax, 0)
	k.say("p", 10)
	k.say("q", 40)
	k.Away("q")
	k.say("p", 20)
	require.Equal(t, 40, k.w())
	k.say("p", 50)
	require.Equal(t, 50, k.w())
	k.Back("q")
	k.say("p", 45)
	require.Equal(t, 50, k.w())
}

// A partition that is away is restored as one that is here.
func TestAwayIsNoState(t *testing.T) {
	k := newTalk(PolicyMin, 0)
	k.say("p", 10)
	k.say("q", 20)
	k.Away("p")
	k.tick()
	require.Equal(t, 20, k.w())
	again := newTalk(PolicyMin, 0)
	require.NoError(t, again.Restore(k.AppendState(nil), again.now))
	again.say("q", 30)
	require.Equal(t, 20, again.w())
	again.Away("p")
	again.say("q", 31)
	require.Equal(t, 31, again.w())
}
