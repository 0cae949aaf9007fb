package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// still makes an owner whose turns the test takes itself.
func still(r *rig) *owner {
	h := newHost(r.config())
	r.Host = h
	o := newOwner(h)
	require.NoError(r.t, o.restore())
	r.t.Cleanup(o.cancel)
	return o
}

// quiet says that the owner has nothing to do but to wait for others.
func quiet(t *testing.T, o *owner) {
	o.wake = time.Now().Add(time.Hour)
	defer o.stopTimers()
	select {
	case <-o.timer(time.Now()):
		require.Fail(t, "the owner's timer is ready again and again")
	case <-time.After(50 * time.Millisecond):
	}
}

// While the reader is slow, a refused row that is due does not keep the owner
// busy.
func TestNoSpinWithRefusedRows(t *testing.T) {
	o := still(newRig(t, passes, nil))
	o.outbox.stage(&note{key: "a"}, "", 0)
	o.outbox.ready, o.outbox.staged = o.outbox.staged, nil
	g := o.outbox.take(10, time.Now())
	o.outbox.handed(g)
	o.outbox.settle(g, []int{0}, time.Now().Add(-time.Second))
	quiet(t, o)
}

// What waits for something else keeps no timer running.
func TestNoSpinWhileWaiting(t *testing.T) {
	for name, change := range map[string]func(o *owner){
		"a commit is under way":       func(o *owner) { o.flight = &writeSet{} },
		"reading has stopped":         func(o *owner) { o.faulted = true; o.outbox.settled = nil; o.startCommit() },
		"a foreign processor is busy": func(o *owner) { o.chain.Begin(nil, o.now()); o.outbox.settled = nil; o.lazy = time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			o := still(newRig(t, passes, nil))
			o.outbox.settled = []*out{{}}
			o.lazy = time.Now().Add(-time.Second)
			o.applied = pending{rows: floodRows, dirty: true, since: o.lazy, latest: o.lazy}
			change(o)
			quiet(t, o)
		})
	}
}

// What was settled before Close is known to be delivered by the next run.
func TestCloseSeesSettledRows(t *testing.T) {
	r := newRig(t, passes, func(c *Config) { c.Limits.BatchRows = 1 }).open()
	var notes []*note
	for i := range int64(40) {
		notes = append(notes, at(i, "a"))
	}
	r.wait(r.offer(events(0, notes...)), "the commit")
	var deliveries []*Delivery
	for range notes {
		deliveries = append(deliveries, r.next())
	}
	for _, d := range deliveries {
		d.Settle(nil)
	}
	r.close()
	require.Zero(t, r.disk.keys(t, outboxPrefix))
}

// Rows that were delivered after reading has stopped do not come again either.
func TestFaultRemovesSettledRows(t *testing.T) {
	for _, stop := range []bool{false, true} {
		r := newRig(t, passes, nil).open()
		r.wait(r.offer(events(0, at(1, "a"), at(2, "b"))), "the commit")
		r.offer(events(0, at(1, "other")))
		<-r.faults
		r.take(2)
		if stop {
			r.close()
			require.Zero(t, r.disk.keys(t, outboxPrefix))
			continue
		}
		require.Eventually(t, func() bool { return r.disk.now(t).keys(t, outboxPrefix) == 0 }, patience, time.Millisecond)
	}
}

// While batches keep coming, a commit starts after a while all the same.
func TestFloodIsCommittedByTime(t *testing.T) {
	o := still(newRig(t, passes, nil))
	for i := range int64(3) {
		o.Host.mailbox <- events(i, at(i, "a"))
	}
	o.take(<-o.mailbox)
	o.work()
	o.startCommit()
	require.Nil(t, o.flight, "more is there to go into the same commit")
	o.applied.since = o.applied.since.Add(-floodCommit)
	o.startCommit()
	require.NotNil(t, o.flight)
}

// A source that says it has more, and sends it without being acknowledged, is waited
// for; when it is silent, or says that this is all, the commit starts.
func TestFlowSharesACommit(t *testing.T) {
	o := still(newRig(t, passes, nil))
	take := func(from int64, flows bool) {
		b := events(from, at(from, "a"))
		b.Flows = flows
		o.take(b)
		o.work()
		o.startCommit()
	}
	take(0, true)
	take(1, true)
	require.Nil(t, o.flight, "more comes")
	o.applied.latest = o.applied.latest.Add(-flowPause)
	o.startCommit()
	require.NotNil(t, o.flight, "it runs dry")

	o = still(newRig(t, passes, nil))
	take(0, true)
	require.Nil(t, o.flight)
	take(1, false)
	require.NotNil(t, o.flight, "that was all")
}

// Bytes that nobody holds any more do not bring a commit about.
func TestFreedBytesDoNotCount(t *testing.T) {
	for _, freed := range []int64{0, 900} {
		o := still(newRig(t, passes, func(c *Config) { c.Limits.CommitBytes = 1000 }))
		for i := range int64(2) {
			b := events(i, at(i, "a"))
			b.Bytes, b.Freed, b.Flows = 1000, freed, true
			o.take(b)
			o.work()
		}
		require.Equal(t, 2*(1000-freed), o.applied.bytes)
		o.startCommit()
		require.Equal(t, freed == 0, o.flight != nil)
	}
}
