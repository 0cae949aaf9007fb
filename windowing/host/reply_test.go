package host

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/windowing"
)

func replying(c *Config) { c.Reply = true }

// apply offers a batch and gives what comes out of it, each row with the number of
// the message that it derives from.
func (r *rig) apply(b *Batch) (rows []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	replies, err := r.Apply(ctx, b)
	require.NoError(r.t, err)
	for _, reply := range replies {
		n := reply.Message.(*note)
		rows = append(rows, fmt.Sprintf("%s=%d of %d", n.key, n.n, reply.Entry))
	}
	return rows
}

// What comes out of a batch goes back to its caller, and again when the batch is
// delivered again, also after a restart.
func TestReplies(t *testing.T) {
	r := newRig(t, sums, replying).open()
	source := []*note{at(1, "a"), at(2, "b"), at(3, "a"), at(11, "c"), at(12, "c"), at(25, "d")}
	require.Empty(t, r.apply(events(0, source[0:3]...)))
	require.Equal(t, []string{"a=2 of 1", "b=1 of 1"}, r.apply(events(3, source[3:5]...)), "they derive from the last message")
	require.Equal(t, []string{"c=2 of 0"}, r.apply(events(5, source[5])))
	for range 2 {
		require.Empty(t, r.apply(events(0, source[0:3]...)))
		require.Equal(t, []string{"a=2 of 1", "b=1 of 1"}, r.apply(events(3, source[3:5]...)))
		require.Equal(t, []string{"c=2 of 0"}, r.apply(events(5, source[5])))
		// In other batches every message takes its rows along.
		require.Equal(t, []string{"a=2 of 4", "b=1 of 4", "c=2 of 5"}, r.apply(events(0, source...)))
		require.Empty(t, r.apply(events(3, source[3])))
		require.Equal(t, []string{"a=2 of 0", "b=1 of 0", "c=2 of 1"}, r.apply(events(4, source[4], source[5])))
		// Rows of new messages and those of old ones in one batch.
		r.reopen()
	}
	require.Equal(t, []string{"c=2 of 0", "d=1 of 1"}, r.apply(events(5, source[5], at(31, "e"))))
	require.Equal(t, []string{"c=2 of 0", "d=1 of 1"}, r.apply(events(5, source[5], at(31, "e"))))
}

// A message that was split gives each row back once, under its own part.
func TestRepliesOfParts(t *testing.T) {
	r := newRig(t, passes, replying).open()
	split := func() *Batch {
		b := events(0, at(1, "a"), at(2, "b"), at(3, "c"))
		for i := range b.Entries {
			b.Entries[i].Position.Offset = int64(i / 2)
		}
		return b
	}
	for range 3 {
		require.Equal(t, []string{"a=1 of 0", "b=1 of 1", "c=1 of 2"}, r.apply(split()))
		r.reopen()
	}
}

// A close in parts gives all its rows back at once, each part in a commit; a
// restart in the middle of it finds the rest.
func TestRepliesOfLargeClose(t *testing.T) {
	r := newRig(t, sums, replying)
	r.limit = 10
	r.open()
	var notes []*note
	for i := range 95 {
		notes = append(notes, at(1, fmt.Sprintf("%02d", i)))
	}
	require.Empty(t, r.apply(events(0, notes...)))
	before := r.disk.commits()
	want := r.apply(events(95, at(10, "z")))
	require.Len(t, want, 95)
	require.Equal(t, 10, r.disk.commits()-before)
	commits := r.disk.commits()
	for n := before; n <= commits; n++ {
		next := r.backTo(n)
		require.Equal(t, want, next.apply(events(95, at(10, "z"))), "stopped after %d of %d commits", n, commits)
		next.close()
	}
}

// Messages without a position give their rows back, which nothing remembers.
func TestRepliesWithoutPosition(t *testing.T) {
	r := newRig(t, sums, func(c *Config) { c.Reply, c.Positions = true, None }).open()
	unplaced := func(notes ...*note) *Batch {
		b := events(0, notes...)
		for i := range b.Entries {
			b.Entries[i].Position = Position{}
		}
		return b
	}
	require.Empty(t, r.apply(unplaced(at(1, "a"))))
	require.Equal(t, []string{"a=1 of 1"}, r.apply(unplaced(at(2, "b"), at(11, "c")))[:1])
	require.Empty(t, r.apply(unplaced(at(12, "c"))))
	r.close()
	require.Zero(t, r.disk.keys(t, repliesPrefix))
}

// The log of rows is bounded by bytes and by time, in memory and on disk.
func TestRepliesAreBounded(t *testing.T) {
	r := newRig(t, passes, func(c *Config) { c.Reply, c.Limits.LogBytes, c.Horizon = true, 2000, time.Minute }).open()
	for i := range int64(1000) {
		require.Len(t, r.apply(events(i, at(i, "a"))), 1)
	}
	require.Less(t, r.disk.now(t).keys(t, repliesPrefix), 400)
	require.Empty(t, r.apply(events(0, at(0, "a"))), "its row is forgotten")
	require.Len(t, r.apply(events(999, at(999, "a"))), 1)
	r.clock.pass(time.Hour)
	require.Len(t, r.apply(events(1000, at(1000, "a"))), 1)
	r.reopen()
	require.Equal(t, 1, r.disk.now(t).keys(t, repliesPrefix))
	require.Len(t, r.apply(events(1000, at(1000, "a"))), 1)
	require.Len(t, r.apply(events(1001, at(1001, "a"))), 1)
}

// Concurrent calls share commits, and each gets its own rows.
func TestRepliesToConcurrentCalls(t *testing.T) {
	r := newRig(t, passes, replying).open()
	before := r.disk.commits()
	release, entered := make(chan struct{}), make(chan struct{}, 100)
	r.disk.OnCommit(func(*kv.Batch) error {
		entered <- struct{}{}
		<-release
		return nil
	})
	var wg sync.WaitGroup
	for i := range int64(50) {
		wg.Go(func() {
			key := fmt.Sprint(i)
			if rows := r.apply(events(2*i, at(i, key), at(i, key))); len(rows) != 2 || rows[0] != key+"=1 of 0" || rows[1] != key+"=1 of 1" {
				t.Error(i, rows)
			}
		})
	}
	<-entered
	require.Eventually(t, func() bool { return r.meter.count(RowsIn) == 100 }, patience, time.Millisecond)
	close(release)
	wg.Wait()
	require.LessOrEqual(t, r.disk.commits()-before, 2)
}

// Calls under way when the host is closed are answered, or told so; what is
// answered is on disk.
func TestCloseDuringCalls(t *testing.T) {
	for round := range 30 {
		r := newRig(t, passes, replying).open()
		answered := make([]bool, 40)
		var wg sync.WaitGroup
		started := make(chan struct{}, len(answered))
		for i := range answered {
			wg.Go(func() {
				started <- struct{}{}
				_, err := r.Apply(context.Background(), events(int64(i), at(int64(i), "a")))
				if answered[i] = err == nil; err != nil && err != ErrClosed {
					t.Error(err)
				}
			})
		}
		for range round {
			<-started
		}
		r.close()
		wg.Wait()
		r.open()
		for i, ok := range answered {
			before := r.meter.count(Redelivered)
			require.Len(t, r.apply(events(int64(i), at(int64(i), "a"))), 1)
			if ok {
				require.Equal(t, before+1, r.meter.count(Redelivered), "call %d was answered before it was on disk", i)
			}
		}
	}
}

// Messages whose rows were not delivered come again, in other batches, after stops
// and kills: in the end every row was delivered, with the right count.
func TestRepliesAtRandom(t *testing.T) {
	rnd := newSeed(t)
	for range 40 {
		r := newRig(t, []func() []windowing.Stage{sums, chained}[rnd.IntN(2)], replying)
		r.limit = 1 + rnd.IntN(10)
		r.open()
		group, counts := wholeKey, map[string]int64{}
		if len(r.stages()) > 2 {
			group = firstLetter
		}
		var source []*note
		for i := range int64(50 + rnd.IntN(150)) {
			n := at(i/3, fmt.Sprintf("%c%d", 'a'+rnd.IntN(3), rnd.IntN(5)))
			counts[fmt.Sprint(windowOf(n.at), " ", group(n))]++
			source = append(source, n)
		}
		// Two moments, so that both windows of a chain see their last ones closed.
		source = append(source, at(200, "end"), at(400, "end"))
		counts["20 "+group(source[len(source)-1])]++
		got := map[string]int64{}
		for done := 0; done < len(source); {
			to := min(len(source), done+1+rnd.IntN(20))
			replies, err := r.Apply(context.Background(), events(int64(done), source[done:to]...))
			require.NoError(t, err)
			switch rnd.IntN(10) {
			case 0:
				dead := r
				r = r.kill()
				dead.close()
			case 1:
				r.reopen()
			case 2, 3, 4: // the output refuses them
			default:
				for _, reply := range replies {
					n := reply.Message.(*note)
					got[fmt.Sprint(windowOf(n.at), " ", n.key)] = n.n
				}
				done = to
			}
		}
		require.Equal(t, counts, got)
		r.close()
	}
}

// A call that gives up leaves its batch to the host.
func TestCallGivesUp(t *testing.T) {
	r := newRig(t, passes, replying).open()
	release, entered := make(chan struct{}), make(chan struct{}, 100)
	r.disk.OnCommit(func(*kv.Batch) error {
		entered <- struct{}{}
		<-release
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error)
	go func() {
		_, err := r.Apply(ctx, events(0, at(1, "a")))
		gone <- err
	}()
	<-entered
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	close(release)
	require.Equal(t, []string{"a=1 of 0"}, r.apply(events(0, at(1, "a"))), "the redelivery")
	require.EqualValues(t, 1, r.meter.count(Redelivered))
}

// A host does not take the state of another form, or of other positions.
func TestStateOfAnotherHost(t *testing.T) {
	r := newRig(t, sums, nil).open()
	r.close()
	for name, change := range map[string]func(*Config){
		"windowed input":      replying,
		`position was "", is`: func(c *Config) { c.PositionText = "ordinal" },
	} {
		r.change = change
		_, err := Open(r.config())
		require.ErrorIs(t, err, ErrConfiguration)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "state file", "the remedy")
	}
	r.change = nil
	r.open()
}
