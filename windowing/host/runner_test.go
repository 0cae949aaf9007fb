package host

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// blockedDisk makes the next commit wait.
func blockedDisk(r *rig) (entered chan struct{}, release func()) {
	gate := make(chan struct{})
	entered = make(chan struct{}, 1000)
	r.disk.OnCommit(func(*kv.Batch) error {
		entered <- struct{}{}
		<-gate
		return nil
	})
	return entered, sync.OnceFunc(func() { close(gate) })
}

// Closing twice, by several goroutines, and using the host afterwards.
func TestCloseTwice(t *testing.T) {
	r := newRig(t, passes, nil).open()
	r.wait(r.offer(events(0, at(1, "a"), at(2, "b"))), "the commit")
	d := r.next()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(r.close)
	}
	wg.Wait()
	r.close()
	for range 200 {
		d.Settle(nil)
	}
	_, err := r.Next(context.Background())
	require.ErrorIs(t, err, ErrClosed)
	_, err = r.Apply(context.Background(), events(2, at(3, "c")))
	require.ErrorIs(t, err, ErrClosed)
	for range 20 {
		require.ErrorIs(t, r.Offer(context.Background(), events(2, at(3, "c"))), ErrClosed)
	}
	select {
	case <-r.Done():
	default:
		require.Fail(t, "not done")
	}
}

// Offers that wait for room are let go by a stop, by their context, or when there
// is room; the bounds are those of the mailbox.
func TestOffersWait(t *testing.T) {
	for name, limits := range map[string]Limits{
		"rows":  {MailboxRows: 8, UnreadRows: 4},
		"bytes": {MailboxBytes: 100, UnreadRows: 4},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, passes, func(c *Config) { c.Limits = limits }).open()
			var offered, refused atomic.Int64
			var wg sync.WaitGroup
			for i := range int64(50) {
				wg.Go(func() {
					err := r.Offer(context.Background(), events(2*i, at(i, "a"), at(i, "b")))
					if err == nil {
						offered.Add(1)
					} else if err == ErrClosed {
						refused.Add(1)
					}
				})
			}
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			for i := int64(50); ; i++ {
				if err := r.Offer(ctx, events(2*i, at(i, "a"), at(i, "b"))); err != nil {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					break
				}
			}
			before := offered.Load()
			require.Less(t, before, int64(30), "nobody reads")
			r.take(20)
			require.Eventually(t, func() bool { return offered.Load() > before }, patience, time.Millisecond)
			r.close()
			wg.Wait()
			require.EqualValues(t, 50, offered.Load()+refused.Load())
			require.Positive(t, refused.Load())
		})
	}
}

// Everything that is offered comes out while readers and offers wait for each
// other in small bounds.
func TestSmallBounds(t *testing.T) {
	r := newRig(t, passes, func(c *Config) {
		c.Limits = Limits{MailboxRows: 1, MailboxBytes: 1, CommitRows: 1, PendingRows: 1, UnreadRows: 1, BatchRows: 1}
	}).open()
	s := r.sink(nil)
	var wg sync.WaitGroup
	for i := range int64(20) {
		wg.Go(func() {
			for j := range int64(20) {
				n := at(j, fmt.Sprint(i, ".", j))
				n.partition = fmt.Sprint(i)
				r.wait(r.offer(events(j, n)), "an acknowledgement")
			}
		})
	}
	wg.Wait()
	r.end()
	require.Len(t, s.ended(), 400)
}

// Acknowledgements are called in order, off the owner, and one that takes long
// holds up nothing but those behind it.
func TestSlowAcknowledgement(t *testing.T) {
	r := newRig(t, passes, nil).open()
	release := make(chan struct{})
	var order []int64
	var last chan struct{}
	for i := range int64(10) {
		b, done := events(i, at(i, "a")), make(chan struct{})
		b.Ack = func() {
			<-release
			order = append(order, i)
			close(done)
		}
		last = done
		require.NoError(t, r.Offer(context.Background(), b))
	}
	r.take(10)
	require.True(t, open1(last))
	close(release)
	r.wait(last, "the acknowledgements")
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
}

// Close calls the acknowledgements of what is on disk.
func TestCloseAcknowledges(t *testing.T) {
	r := newRig(t, passes, nil).open()
	entered, release := blockedDisk(r)
	var acked []chan struct{}
	acked = append(acked, r.offer(events(0, at(0, "a"))))
	<-entered
	for i := range int64(50) {
		acked = append(acked, r.offer(events(i+1, at(i, "a"))))
	}
	release()
	r.close()
	for _, done := range acked {
		require.False(t, open1(done))
	}
	require.Equal(t, 51, r.disk.rows(t))
}

// Settling goes on while rows are handed over and the disk is slow.
func TestSettleFromManyGoroutines(t *testing.T) {
	r := newRig(t, passes, func(c *Config) { c.Limits.BatchRows = 3 }).open()
	const rows = 3000
	for i := int64(0); i < rows; i += 10 {
		var notes []*note
		for j := range int64(10) {
			notes = append(notes, at(i+j, "a"))
		}
		r.offer(events(i, notes...))
	}
	r.end()
	var wg sync.WaitGroup
	var settled atomic.Int64
	for range 8 {
		wg.Go(func() {
			for {
				d, err := r.Next(context.Background())
				if err != nil {
					if err != ErrEnded {
						t.Error(err)
					}
					return
				}
				wg.Go(func() {
					failed := []int{}
					if settled.Add(1)%7 == 0 {
						failed = d.All()[:1]
					}
					d.Settle(failed)
				})
			}
		})
	}
	wg.Wait()
	require.Zero(t, r.disk.now(t).keys(t, outboxPrefix))
}

// A row in flight at a stop comes again.
func TestRowInFlightComesAgain(t *testing.T) {
	r := newRig(t, passes, nil).open()
	r.wait(r.offer(events(0, at(1, "a"), at(2, "b"))), "the commit")
	d := r.next()
	r.reopen()
	d.Settle(nil) // of the host before: no-op
	require.Equal(t, []string{"a=1", "b=1"}, texts(r.take(2)))
	r.reopen()
	require.Zero(t, r.disk.now(t).keys(t, outboxPrefix))
}
