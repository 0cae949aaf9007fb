package host

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Partitions that move leave their state behind, which is said with the number of
// windows; those that nothing is known of leave nothing.
func TestMovedPartitionsAreSaid(t *testing.T) {
	r := newRig(t, sums, nil)
	o := still(r)
	o.take(events(0, at(1, "a"), at(1, "b"), at(2, "a")))
	o.work()
	known := ""
	for name := range o.positions.parts {
		known = name
	}

	o.moved(moved{gone: []string{known, "orders/9"}})
	log := r.log.all()
	require.Len(t, log, 1)
	require.Contains(t, log[0], known+" go to another member")
	require.Contains(t, log[0], `"w" holds 1 windows, 2 groups`)
	require.NotContains(t, log[0], "orders/9")

	o.moved(moved{gone: []string{"orders/9"}})
	require.Len(t, r.log.all(), 1)

	o.moved(moved{come: []string{known, "orders/9"}})
	log = r.log.all()
	require.Len(t, log, 3)
	require.Contains(t, log[1], known+" are read here, where their state is")
	require.Contains(t, log[2], "orders/9 are read here without state")
}

// in makes an event of a partition.
func in(partition string, n *note) *note {
	n.partition = partition
	return n
}

// heard gives the watermark once a message of a partition has come.
func heard(o *owner, offset int64, partition string, second int64) int64 {
	o.take(events(offset, in(partition, at(second, "a"))))
	o.work()
	return int64(o.chain.Watermark(0)) / 1e9
}

// later lets an owner look after things some time later.
func (r *rig) later(o *owner, d time.Duration) {
	r.clock.pass(d)
	o.wake = time.Time{}
	o.housekeep()
}

// A partition that stays with another member for a minute does not hold the watermark
// back any more, until it comes back.
func TestMovedPartitionsDoNotHoldTheWatermarkForEver(t *testing.T) {
	r := newRig(t, sums, nil)
	o := still(r)
	o.moved(moved{come: []string{"orders/0", "orders/1"}})
	heard(o, 0, "orders/0", 10)
	require.EqualValues(t, 10, heard(o, 0, "orders/1", 30))

	o.moved(moved{gone: []string{"orders/0"}})
	r.later(o, awayGrace-1)
	require.EqualValues(t, 10, heard(o, 1, "orders/1", 31))
	o.moved(moved{come: []string{"orders/0"}})
	r.later(o, awayGrace)
	require.EqualValues(t, 10, heard(o, 2, "orders/1", 32), "it came back in time")

	o.moved(moved{gone: []string{"orders/0"}})
	r.later(o, awayGrace)
	log := r.log.all()
	require.Contains(t, log[len(log)-1], "partitions orders/0 have been with another member of the consumer group for 1m0s: they do not hold")
	require.EqualValues(t, 40, heard(o, 3, "orders/1", 40))
	r.later(o, awayGrace)
	require.Len(t, r.log.all(), len(log), "said once")

	o.moved(moved{come: []string{"orders/0"}})
	require.EqualValues(t, 40, heard(o, 4, "orders/1", 50))
	require.EqualValues(t, 45, heard(o, 7, "orders/0", 45))
}

// When its time is up the windows close without another message.
func TestMovedPartitionsLetWindowsClose(t *testing.T) {
	r := newRig(t, sums, nil).open()
	r.wait(r.offer(events(0, in("orders/0", at(1, "a")))), "a commit")
	r.wait(r.offer(events(0, in("orders/1", at(11, "b")))), "a commit")
	r.Host.Moved([]string{"orders/0"}, nil)
	require.Eventually(t, func() bool { return len(r.log.all()) > 0 }, patience, time.Millisecond)
	r.clock.pass(awayGrace)
	require.Equal(t, []string{"a=1"}, texts(r.take(1)))
}

// What went to another member while nothing ran here is seen when the partitions are
// shared out for the first time. Other topics are none of it.
func TestMovedWhileNothingRan(t *testing.T) {
	r := newRig(t, sums, nil)
	o := still(r)
	heard(o, 0, "orders/0", 10)
	heard(o, 0, "orders/1", 30)
	heard(o, 0, "payments/0", 35)
	o.moved(moved{come: []string{"orders/1"}})
	require.Contains(t, r.log.all()[0], "partitions orders/0 go to another member")
	r.later(o, awayGrace)
	require.EqualValues(t, 30, heard(o, 1, "payments/0", 36))
	o.moved(moved{come: []string{"orders/0"}})
	require.EqualValues(t, 30, heard(o, 1, "orders/1", 50), "it is back")
	require.EqualValues(t, 33, heard(o, 5, "orders/0", 33))
	before := len(r.log.all())
	o.moved(moved{come: []string{"orders/2"}})
	require.Len(t, r.log.all(), before+1, "nothing has gone since the first time")
}

// Where the watermark has partitions of its own, nothing is known of them.
func TestMovedPartitionsOfAnotherName(t *testing.T) {
	r := newRig(t, sums, nil)
	o := still(r)
	b := events(0, in("sensor 1", at(10, "a")))
	b.Entries[0].Position.Partition = "orders/0"
	o.take(b)
	o.work()
	o.moved(moved{gone: []string{"orders/0"}})
	r.later(o, awayGrace)
	log := r.log.all()
	require.Contains(t, log[len(log)-1], "set idle_timeout")
}

// A host that has ended hears nothing, and nobody waits for it.
func TestMovedAfterTheEnd(t *testing.T) {
	r := newRig(t, sums, nil)
	r.open()
	r.Host.Moved([]string{"orders/1"}, nil)
	require.NoError(t, r.Host.Close(context.Background()))
	r.Host.Moved([]string{"orders/1"}, nil)
}
