package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing"
)

// relaying is a host with operators behind it that save for themselves.
func relaying(c *Config) {
	c.Reply = true
	c.Again = func(windowing.Message, *Relayed) {}
}

// After a restart all rows of the last step leave with the first of its messages that
// comes again, and each once more with its own.
func TestTheStepInDoubtLeavesAtOnce(t *testing.T) {
	r := newRig(t, passes, relaying).open()
	a, b, c, d := at(1, "a"), at(2, "b"), at(3, "c"), at(4, "d")
	require.Len(t, r.apply(events(0, a)), 1)
	require.Len(t, r.apply(events(1, b, c)), 2)
	require.Equal(t, []string{"b=1 of 0"}, r.apply(events(1, b)), "nothing is in doubt without a restart")
	r.reopen()
	require.Equal(t, []string{"a=1 of 0"}, r.apply(events(0, a)), "that step is through")
	require.Equal(t, []string{"c=1 of 0", "b=1 of 0"}, r.apply(events(1, b)))
	require.Equal(t, []string{"c=1 of 0"}, r.apply(events(2, c)))
	require.Equal(t, []string{"b=1 of 0"}, r.apply(events(1, b)))
	r.reopen()
	require.Equal(t, []string{"a=1 of 0", "b=1 of 1", "c=1 of 2", "d=1 of 3"}, r.apply(events(0, a, b, c, d)), "each once in a batch")
	r.reopen()
	require.Equal(t, []string{"c=1 of 0", "d=1 of 0", "b=1 of 0"}, r.apply(events(1, b)), "what left in the step before it was lost too")
	r.reopen()
	require.Len(t, r.apply(events(4, at(5, "e"))), 1, "newer messages: the others are acknowledged")
	require.Equal(t, []string{"b=1 of 0"}, r.apply(events(1, b)))
}

// Messages of the batch that were applied in a life before belong to the step: they come
// again in front of the rest.
func TestKnownMessagesBelongToTheStep(t *testing.T) {
	r := newRig(t, passes, relaying).open()
	a, b, c := at(1, "a"), at(2, "b"), at(3, "c")
	require.Len(t, r.apply(events(0, a, b)), 2)
	r.reopen()
	require.Equal(t, []string{"b=1 of 0", "a=1 of 0"}, r.apply(events(0, a)))
	require.Equal(t, []string{"b=1 of 0", "c=1 of 1"}, r.apply(events(1, b, c)))
	r.reopen()
	require.Equal(t, []string{"c=1 of 0", "b=1 of 0"}, r.apply(events(1, b)))
}

// A step whose messages have not come again yet stays in doubt over further restarts.
func TestAStepStaysInDoubt(t *testing.T) {
	of := func(partition string, from int64, notes ...*note) *Batch {
		b := events(from, notes...)
		for i := range b.Entries {
			b.Entries[i].Position.Partition = partition
		}
		return b
	}
	a, b := at(1, "a"), at(2, "b")
	r := newRig(t, passes, relaying).open()
	require.Len(t, r.apply(of("p", 0, a, b)), 2)
	r.reopen()
	require.Len(t, r.apply(of("q", 0, at(1, "c"))), 1)
	r.reopen()
	require.Equal(t, []string{"b=1 of 0", "c=1 of 0", "a=1 of 0"}, r.apply(of("p", 0, a)))
	require.Len(t, r.apply(of("q", 1, at(2, "d"))), 1)
	r.reopen()
	require.Equal(t, []string{"a=1 of 0"}, r.apply(of("p", 0, a)), "that step is through")
}

// An output fails for longer than position_horizon: rows that are sent again and again
// stay in the log, whatever else comes out meanwhile.
func TestRepliesOutliveTheirHorizon(t *testing.T) {
	r := newRig(t, passes, func(c *Config) { c.Reply, c.Horizon = true, time.Minute }).open()
	for i := range int64(100) {
		require.Len(t, r.apply(events(i, at(i, "a"))), 1)
		require.Equal(t, []string{"a=1 of 0"}, r.apply(events(0, at(0, "a"))), "after %d rounds", i)
		r.clock.pass(30 * time.Second)
	}
}
