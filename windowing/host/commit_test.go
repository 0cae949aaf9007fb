package host

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/statecache/kv/kvtest"
)

func open1(c <-chan struct{}) bool {
	select {
	case <-c:
		return false
	default:
		return true
	}
}

// A failed commit is tried again with the same bytes. Until the disk has them
// nothing is acknowledged and no row leaves, and afterwards everything goes on.
func TestFailedCommitIsTriedAgain(t *testing.T) {
	for name, fail := range map[string]func(s *kvtest.Store, n int){
		"nothing was written":    (*kvtest.Store).FailNext,
		"everything was written": (*kvtest.Store).FailAfterNext,
	} {
		for _, n := range []int{1, 3} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				r := newRig(t, sums, nil).open()
				r.wait(r.offer(events(0, at(1, "a"), at(2, "b"))), "the first commit")

				var acked atomic.Int32
				var tries []string
				tried := make(chan struct{}, 100)
				r.disk.OnCommit(func(b *kv.Batch) error {
					if len(tries) <= n {
						assert.Zero(t, acked.Load())
					}
					tries = append(tries, string(b.Bytes()))
					tried <- struct{}{}
					return nil
				})
				fail(r.disk.Store, n)
				deliver := func(from int64, notes ...*note) <-chan struct{} {
					b, done := events(from, notes...), make(chan struct{})
					b.Ack = func() { acked.Add(1); close(done) }
					require.NoError(t, r.Offer(context.Background(), b))
					return done
				}
				deliver(2, at(3, "a"), at(12, "a")) // closes the first window
				<-tried
				last := deliver(4, at(13, "b"), at(25, "b")) // waits in memory, and closes the second
				ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
				defer cancel()
				_, err := r.Next(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded, "no row leaves before its commit")
				r.wait(last, "the commits")
				require.Len(t, tries, n+2)
				for _, again := range tries[1 : n+1] {
					require.Equal(t, tries[0], again)
				}
				require.Equal(t, []string{"a=2", "b=1", "a=1", "b=1"}, texts(r.take(4)))
				require.EqualValues(t, n, r.meter.count(CommitErrors))
				require.Contains(t, strings.Join(r.log.all(), "\n"), fmt.Sprintf("on disk again after %d failed tries", n))
				r.reopen()
				r.offer(events(6, at(40, "c")))
				require.Equal(t, []string{"b=1"}, texts(r.take(1)))
			})
		}
	}
}

func texts(rows []*note) (all []string) {
	for _, n := range rows {
		all = append(all, fmt.Sprintf("%s=%d", n.key, n.n))
	}
	return all
}

// A stop while the disk takes nothing ends soon, and acknowledges nothing that is
// not on disk.
func TestCloseWithFailingDisk(t *testing.T) {
	r := newRig(t, sums, nil).open()
	r.wait(r.offer(events(0, at(1, "a"))), "the first commit")
	r.disk.FailNext(1 << 30)
	lost := []chan struct{}{r.offer(events(1, at(2, "a"))), r.offer(events(2, at(3, "a")))}
	require.Eventually(t, func() bool { return r.disk.Counters().Failed > 1 }, patience, time.Millisecond)
	lost = append(lost, r.offer(events(3, at(12, "a"))))
	start := time.Now()
	r.close()
	require.Less(t, time.Since(start), closeGrace+2*time.Second)
	for _, acked := range lost {
		require.True(t, open1(acked))
	}
	require.Contains(t, strings.Join(r.log.all(), "\n"), "comes again")

	r.disk.FailNext(0)
	r.open()
	r.wait(r.offer(events(0, at(1, "a"), at(2, "a"), at(3, "a"))), "the redelivery")
	r.offer(events(3, at(12, "a")))
	require.Equal(t, []string{"a=3"}, texts(r.take(1)))
}

// A disk that hangs holds up Close for as long as its context says.
func TestCloseWithHangingDisk(t *testing.T) {
	r := newRig(t, sums, nil).open()
	release := make(chan struct{})
	entered := make(chan struct{}, 10)
	r.disk.OnCommit(func(*kv.Batch) error {
		entered <- struct{}{}
		<-release
		return nil
	})
	acked := r.offer(events(0, at(1, "a")))
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.Close(ctx), context.DeadlineExceeded)
	require.True(t, open1(acked))
	close(release)
	r.close()
}

// A batch whose commit came through while Close waited is acknowledged.
func TestCloseWaitsForTheCommit(t *testing.T) {
	r := newRig(t, sums, nil).open()
	release := make(chan struct{})
	entered := make(chan struct{}, 10)
	r.disk.OnCommit(func(*kv.Batch) error {
		entered <- struct{}{}
		<-release
		return nil
	})
	first := r.offer(events(0, at(1, "a")))
	<-entered
	second := r.offer(events(1, at(2, "a")))
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = r.Close(context.Background())
	}()
	<-r.stop
	close(release)
	r.wait(closed, "Close")
	require.False(t, open1(first))
	require.False(t, open1(second), "what waited was applied and committed too")
}

// Settled rows alone are committed after a while, not each by itself.
func TestSettledRowsAreCommittedLazily(t *testing.T) {
	r := newRig(t, passes, func(c *Config) { c.Limits.BatchRows = 1 }).open()
	r.wait(r.offer(events(0, at(1, "a"), at(2, "a"), at(3, "a"))), "the commit")
	before := r.disk.commits()
	r.take(3)
	require.Eventually(t, func() bool { return r.disk.commits() == before+1 }, patience, time.Millisecond)
	require.Zero(t, r.disk.now(t).keys(t, outboxPrefix))
}

// A flood is committed in few commits, a single message at once.
func TestCommitsGroupThemselves(t *testing.T) {
	r := newRig(t, sums, nil).open()
	before := r.disk.commits()
	release, entered := make(chan struct{}), make(chan struct{}, 1000)
	r.disk.OnCommit(func(*kv.Batch) error {
		entered <- struct{}{}
		<-release
		return nil
	})
	var last chan struct{}
	for i := range int64(500) {
		last = r.offer(events(i, at(1, "a")))
	}
	<-entered
	close(release)
	r.wait(last, "the commit")
	require.LessOrEqual(t, r.disk.commits()-before, 3)
}

// With state in memory there is nothing to wait for.
func TestMemory(t *testing.T) {
	r := newRig(t, sums, nil)
	r.disk = nil
	r.open()
	r.wait(r.offer(events(0, at(1, "a"), at(2, "a"))), "the acknowledgement")
	r.offer(events(2, at(11, "a")))
	require.Equal(t, []string{"a=2"}, texts(r.take(1)))
	r.wait(r.offer(events(0, at(1, "a"))), "a redelivery")
	require.EqualValues(t, 1, r.meter.count(Redelivered))
}
