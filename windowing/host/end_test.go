package host

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing"
)

func flushing1(c *Config) { c.Flush = true }

// A natural end keeps open windows, and the next run goes on with them.
func TestEndKeepsWindows(t *testing.T) {
	r := newRig(t, sums, nil).open()
	s := r.sink(nil)
	r.offer(events(0, at(1, "a"), at(11, "b")))
	r.end()
	require.Equal(t, []string{"a=1"}, texts(s.ended()))
	_, err := r.Next(context.Background())
	require.ErrorIs(t, err, ErrEnded, "it stays ended")
	r.reopen()
	s = r.sink(nil)
	r.offer(events(2, at(12, "b"), at(21, "c")))
	r.end()
	require.Equal(t, []string{"b=2"}, texts(s.ended()))
}

// An end with nothing before it.
func TestEndOfNothing(t *testing.T) {
	for name, change := range map[string]func(*Config){"keep": nil, "flush": flushing1} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, sums, change).open()
			s := r.sink(nil)
			r.end()
			require.Empty(t, s.ended())
		})
	}
}

// row is what a flush gives out.
func (n *note) full() string {
	return fmt.Sprintf("%s=%d revision %d %s", n.key, n.n, n.revision, n.timing)
}

func fulls(rows []*note) (all []string) {
	for _, n := range rows {
		all = append(all, n.full())
	}
	return all
}

// A flush puts out what is open and keeps it: run by run, only what has changed
// since comes out, as the next revision.
func TestFlush(t *testing.T) {
	r := newRig(t, sums, flushing1)
	run := func(from int64, notes ...*note) []string {
		r.open()
		defer r.close()
		s := r.sink(nil)
		if len(notes) > 0 {
			r.offer(events(from, notes...))
		}
		r.end()
		return fulls(s.ended())
	}
	require.Equal(t, []string{"a=1 revision 1 on_time", "b=1 revision 1 on_time", "c=1 revision 1 on_time"},
		run(0, at(1, "a"), at(11, "b"), at(12, "c")))
	require.Empty(t, run(0), "the same again")
	require.Empty(t, run(0, at(1, "a"), at(11, "b"), at(12, "c")), "read again")
	require.Equal(t, []string{"b=2 revision 2 late"}, run(3, at(13, "b")))
	require.Equal(t, []string{"b=3 revision 3 late", "d=1 revision 1 on_time"}, run(4, at(14, "b"), at(25, "d")))
	// The window of b and c is final by now, and was by then. d has been out.
	require.Empty(t, run(5))
	require.Equal(t, []string{"d=2 revision 2 late"}, run(6, at(26, "d"), at(31, "e"))[:1])
}

// An ordinary close after a flush gives out what has changed.
func TestCloseAfterFlush(t *testing.T) {
	r := newRig(t, sums, flushing1).open()
	s := r.sink(nil)
	r.offer(events(0, at(1, "a"), at(2, "b")))
	r.end()
	require.Equal(t, []string{"a=1 revision 1 on_time", "b=1 revision 1 on_time"}, fulls(s.ended()))
	require.Equal(t, 2, r.disk.now(t).keys(t, flushedPrefix))
	r.reopen()
	r.offer(events(2, at(3, "b"), at(4, "c"), at(15, "d")))
	require.Equal(t, []string{"b=2 revision 2 late", "c=1 revision 1 on_time"}, fulls(r.take(2)))
	r.close()
	require.Zero(t, r.disk.keys(t, flushedPrefix), "nothing is remembered of rows that are final")
}

// Revisions grow strictly also where a window takes late rows after a flush.
func TestRevisionsAfterFlush(t *testing.T) {
	r := newRig(t, func() []windowing.Stage {
		return []windowing.Stage{watermarkStage(0), lateStage("w", 10*time.Second, time.Hour, wholeKey)}
	}, flushing1)
	run := func(from int64, notes ...*note) []string {
		r.open()
		defer r.close()
		s := r.sink(nil)
		for i, n := range notes {
			r.offer(events(from+int64(i), n))
		}
		r.end()
		return fulls(s.ended())
	}
	require.Equal(t, []string{"a=1 revision 1 on_time", "b=1 revision 1 on_time"}, run(0, at(1, "a"), at(1, "b")))
	require.Equal(t, []string{"a=2 revision 2 late"}, run(2, at(2, "a")))
	require.Equal(t, []string{"a=3 revision 3 late", "a=4 revision 4 late", "c=1 revision 1 on_time"},
		run(3, at(3, "a"), at(15, "c"), at(4, "a")))
	require.Equal(t, []string{"b=2 revision 2 late", "a=5 revision 5 late"}, run(6, at(5, "b"), at(6, "a")))
	// The ordinary close of c gives what a flush gave, and goes on from there.
	require.Equal(t, []string{"c=2 revision 2 late"}, run(8, at(16, "c")))
	require.Equal(t, []string{"c=3 revision 3 late", "d=1 revision 1 on_time"}, run(9, at(25, "d"), at(17, "c")))
}

// A row that a flush does not put out again is taken back, and goes on with its
// numbers should it come again.
func TestFlushTakesBack(t *testing.T) {
	r := newRig(t, func() []windowing.Stage {
		odd := func(n int64) bool { return n%2 == 1 }
		return []windowing.Stage{watermarkStage(0), havingStage("w", 10*time.Second, 0, wholeKey, odd)}
	}, flushing1)
	run := func(from int64, notes ...*note) []string {
		r.open()
		defer r.close()
		s := r.sink(nil)
		for i, n := range notes {
			r.offer(events(from+int64(i), n))
		}
		r.end()
		return fulls(s.ended())
	}
	require.Equal(t, []string{"a=1 revision 1 on_time", "b=1 revision 1 on_time"}, run(0, at(1, "a"), at(1, "b")))
	require.Equal(t, []string{"a=1 revision 2 delete"}, run(2, at(2, "a")))
	require.Empty(t, run(0))
	require.Equal(t, []string{"a=3 revision 3 late"}, run(3, at(3, "a")))
	require.Equal(t, []string{"a=3 revision 4 delete"}, run(4, at(4, "a")))
	// The ordinary close puts neither out; b is as it was.
	require.Equal(t, []string{"c=1 revision 1 on_time"}, run(5, at(25, "c")))
	require.Equal(t, 1, r.disk.keys(t, flushedPrefix), "nothing is remembered of rows that are final")
}

// A flush waits for its rows, whoever refuses them or reads slowly, and ends only
// when all of them are delivered.
func TestEndWaitsForDeliveries(t *testing.T) {
	rnd := newSeed(t)
	r := newRig(t, sums, func(c *Config) { c.Flush, c.Limits.UnreadRows = true, 7 })
	r.limit = 5
	r.open()
	var notes []*note
	for i := range 100 {
		notes = append(notes, at(1, fmt.Sprintf("%03d", i)))
	}
	r.offer(events(0, notes...))
	r.end()
	refusals := map[string]int{}
	s := r.sink(func(rows []*note) (failed []int) {
		time.Sleep(time.Millisecond) // a slow reader
		for i, n := range rows {
			if refusals[n.key] < 1+rnd.IntN(2) {
				refusals[n.key]++
				failed = append(failed, i)
			}
		}
		return failed
	})
	require.Len(t, s.ended(), 100)
	require.Zero(t, r.disk.now(t).keys(t, outboxPrefix))
}

// The end waits for a row that is refused for a while.
func TestEndWithRefusedRow(t *testing.T) {
	r := newRig(t, sums, nil).open()
	r.offer(events(0, at(1, "a"), at(11, "b")))
	r.end()
	for range 4 {
		d := r.next()
		d.Settle(d.All())
	}
	require.Equal(t, []string{"a=1"}, texts(r.take(1)))
	_, err := r.Next(context.Background())
	require.ErrorIs(t, err, ErrEnded)
}

// Stopping dead between any two commits of a flush gives out the rest, and the
// same rows.
func TestKillWithinFlush(t *testing.T) {
	var notes []*note
	for i := range int64(60) {
		notes = append(notes, at(i, fmt.Sprint(i%7)))
	}
	run := func(r *rig) []*note {
		s := r.sink(nil)
		r.offer(events(0, notes[:30]...))
		r.offer(events(30, notes[30:]...))
		r.end()
		return s.ended()
	}
	r := newRig(t, sums, flushing1)
	r.limit = 3
	want := byID(t, nil, run(r.open()))
	require.Len(t, want, 42)
	commits := r.disk.commits()
	for n := range commits + 1 {
		var before []*note
		for _, data := range r.disk.log[:n] {
			before = append(before, emittedBy(t, data)...)
		}
		next := r.backTo(n)
		require.Equal(t, want, byID(t, byID(t, nil, before), run(next)), "stopped after %d of %d commits", n, commits)
		next.reopen()
		require.Empty(t, run(next), "nothing comes out twice after a whole end")
		next.close()
	}
}

// Only what differs from what was flushed comes out in the end, whatever was
// flushed when, and the last revision of every row is right.
func TestFlushAtRandom(t *testing.T) {
	rnd := newSeed(t)
	for range 20 {
		r := newRig(t, sums, flushing1)
		counts, got, revisions := map[string]int64{}, map[string]int64{}, map[string]int64{}
		next := int64(0)
		for range 8 {
			r.open()
			s := r.sink(nil)
			for range rnd.IntN(4) {
				var notes []*note
				for range 1 + rnd.IntN(10) {
					n := at((next+int64(len(notes)))/5, fmt.Sprint(rnd.IntN(4)))
					counts[fmt.Sprint(int64(n.at/(10*second)), n.key)]++
					notes = append(notes, n)
				}
				r.offer(events(next, notes...))
				next += int64(len(notes))
			}
			r.end()
			for _, n := range s.ended() {
				require.Equal(t, revisions[n.rowKey]+1, n.revision, "%s", n.full())
				revisions[n.rowKey]++
				key := fmt.Sprint(int64(n.at/(10*second)), n.key)
				require.NotEqual(t, got[key], n.n, "%s came out before", n.full())
				got[key] = n.n
			}
			require.Equal(t, counts, got)
			r.close()
		}
	}
}

// A stop is not an end: nothing is flushed.
func TestCloseDoesNotFlush(t *testing.T) {
	r := newRig(t, sums, flushing1).open()
	r.wait(r.offer(events(0, at(1, "a"))), "the commit")
	r.close()
	require.Zero(t, r.disk.keys(t, outboxPrefix))
	r.open()
	s := r.sink(nil)
	r.end()
	require.Equal(t, []string{"a=1 revision 1 on_time"}, fulls(s.ended()))
}
