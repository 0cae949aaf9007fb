package host

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// grace is a chain whose watermark stays unset for a minute.
func graceful() []windowing.Stage {
	stages := sums()
	stages[0].Watermark.Config.StartupGrace = time.Minute
	return stages
}

// idle is a chain that closes windows in silence.
func idle() []windowing.Stage {
	stages := sums()
	stages[0].Watermark.Config.IdleAdvance = true
	return stages
}

// untouched waits until the owner has looked at the clock again, and says that no
// row came of it.
func (r *rig) untouched() {
	r.wait(r.offer(&Batch{}), "an empty batch")
	select {
	case d := <-r.deliver:
		require.Fail(r.t, "a row came out", "%v", notesOf(d))
	default:
	}
}

// The end of the startup grace sets the watermark without a row.
func TestTickAtTheEndOfGrace(t *testing.T) {
	r := newRig(t, graceful, nil).open()
	r.wait(r.offer(events(0, at(1, "a"), at(11, "b"))), "the commit")
	r.clock.pass(time.Minute - 1)
	r.untouched()
	r.clock.pass(1)
	require.Equal(t, []string{"a=1"}, texts(r.take(1)))
}

// A natural end does not wait for the grace.
func TestEndEndsGrace(t *testing.T) {
	r := newRig(t, graceful, nil).open()
	s := r.sink(nil)
	r.offer(events(0, at(1, "a"), at(11, "b")))
	r.end()
	require.Equal(t, []string{"a=1"}, texts(s.ended()))
}

// Silence closes windows where that was asked for, unless the source says that
// more is waiting.
func TestTickInSilence(t *testing.T) {
	r := newRig(t, idle, func(c *Config) { c.LagTTL = time.Minute })
	o := still(r)
	take := func(n *note, lag bool) {
		b := events(int64(n.at/second), n)
		b.Lag = lag
		o.take(b)
		o.work()
	}
	// pass gives what the ticks of some seconds let out.
	pass := func(n int) (rows []string) {
		defer o.stopTimers()
		for range n {
			r.clock.pass(time.Second)
			select {
			case <-o.tick():
				o.startTick()
				o.work()
			default:
			}
		}
		for _, row := range o.outbox.staged {
			rows = append(rows, row.message.(*note).key)
		}
		return rows
	}
	take(at(1, "a"), true)
	require.Empty(t, pass(20))
	take(at(2, "b"), false)
	require.Empty(t, pass(7))
	require.Equal(t, []string{"a", "b"}, pass(1))
	take(at(11, "c"), true)
	require.Len(t, pass(55), 2)
	require.Len(t, pass(20), 3, "a message that reported a lag long ago says nothing")
}

// A tick goes on while the disk is slow, and its rows wait for their own commit.
func TestTickDuringCommit(t *testing.T) {
	r := newRig(t, graceful, nil).open()
	release, entered := make(chan struct{}), make(chan struct{}, 10)
	r.disk.OnCommit(func(*kv.Batch) error {
		entered <- struct{}{}
		<-release
		return nil
	})
	acked := r.offer(events(0, at(1, "a"), at(11, "b")))
	<-entered
	r.clock.pass(time.Minute)
	second := r.offer(events(2, at(12, "b")))
	require.Eventually(t, func() bool { return r.meter.count(RowsEmitted) == 1 }, patience, time.Millisecond)
	require.True(t, open1(acked))
	select {
	case <-r.deliver:
		require.Fail(t, "a row left before its commit")
	default:
	}
	close(release)
	r.wait(second, "the second commit")
	require.Equal(t, []string{"a=1"}, texts(r.take(1)))
}

// Nothing ticks where reading has stopped, where rows are replied, or where
// nobody reads.
func TestNoTick(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		first  func(r *rig)
	}{
		"reading has stopped": {nil, func(r *rig) {
			r.wait(r.offer(events(0, at(1, "a"), at(11, "b"))), "the commit")
			r.offer(events(0, at(2, "other")))
			require.ErrorIs(t, <-r.faults, ErrPosition)
		}},
		"rows are replied": {replying, func(r *rig) {
			r.apply(events(0, at(1, "a"), at(11, "b")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, graceful, test.change).open()
			test.first(r)
			emitted := r.meter.count(RowsEmitted)
			r.clock.pass(time.Hour)
			r.close()
			require.Equal(t, emitted, r.meter.count(RowsEmitted))
		})
	}
}

// A backlog in the mailbox keeps time from passing.
func TestNoIdleTimeWithWork(t *testing.T) {
	o := still(newRig(t, idle, nil))
	o.Host.mailbox <- &Batch{}
	require.True(t, o.now().Backlog)
	<-o.mailbox
	require.False(t, o.now().Backlog)
}

// A partition that holds the watermark back for a minute is named once.
func TestHolderIsNamed(t *testing.T) {
	r := newRig(t, func() []windowing.Stage {
		return []windowing.Stage{watermarkStage(0, "fast", "slow"), windowStage("w", 10*time.Second, wholeKey)}
	}, nil)
	o := still(r)
	step := func(n *note, from int64) {
		n.partition = "fast"
		o.take(events(from, n))
		o.work()
		o.wake = time.Time{}
		o.housekeep()
	}
	step(at(1, "a"), 0)
	r.clock.pass(30 * time.Second)
	step(at(2, "a"), 1)
	require.Empty(t, r.log.all())
	r.clock.pass(31 * time.Second)
	step(at(3, "a"), 2)
	step(at(4, "a"), 3)
	require.Len(t, r.log.all(), 1)
	require.Contains(t, r.log.all()[0], `"slow"`)
	require.Contains(t, r.log.all()[0], "idle_timeout")
}

// Of partitions that are declared by number those that have sent messages are named,
// and how many have not.
func TestHoldersDeclaredByNumber(t *testing.T) {
	r := newRig(t, func() []windowing.Stage {
		mark := watermarkStage(0)
		mark.Watermark.Config.Sources[0].PartitionCount = 4
		return []windowing.Stage{mark, windowStage("w", 10*time.Second, wholeKey)}
	}, nil)
	o := still(r)
	for i := range int64(4) {
		for _, p := range []string{"orders/2", "orders/0"} {
			n := at(i, "a")
			n.partition = p
			o.take(events(i, n))
			o.work()
			o.wake = time.Time{}
			o.housekeep()
		}
		r.clock.pass(31 * time.Second)
	}
	require.Len(t, r.log.all(), 1)
	require.Contains(t, r.log.all()[0], "2 of the partitions that are declared by number")
	require.Contains(t, r.log.all()[0], "messages came from orders/0, orders/2:")
	require.Contains(t, r.log.all()[0], "idle_timeout")
}

func TestNamesOfPartitionsThatHaveSpoken(t *testing.T) {
	s := newPositions(Offsets, time.Minute)
	require.Empty(t, s.spoken())
	for i := range spokenNames + 2 {
		s.partition(fmt.Sprintf("p%02d", i))
	}
	require.Contains(t, s.spoken(), " p00, p01,")
	require.True(t, strings.HasSuffix(s.spoken(), "p31 and 2 more"), s.spoken())
	s = newPositions(Ordinal, time.Minute)
	s.partition("file")
	require.Empty(t, s.spoken())
}

// A fault is told once, and stops everything but deliveries.
func TestFault(t *testing.T) {
	r := newRig(t, passes, nil).open()
	r.wait(r.offer(events(0, at(1, "a"), at(2, "b"))), "the commit")
	lost := r.offer(events(1, at(3, "other"), at(4, "c")))
	err := <-r.faults
	require.ErrorIs(t, err, ErrPosition)
	later := r.offer(events(2, at(5, "d")))
	require.Equal(t, []string{"a=1", "b=1"}, texts(r.take(2)))
	r.close()
	require.True(t, open1(lost))
	require.True(t, open1(later))
	require.Empty(t, r.faults)
	require.EqualValues(t, 1, r.meter.count(Faults))
	r.open()
	require.False(t, errors.Is(err, ErrConfiguration))
	r.wait(r.offer(events(2, at(5, "d"))), "the right source")
}
