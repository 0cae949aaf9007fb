package host

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing"
)

// early is a chain whose windows put out rows every 10 seconds of the wall clock.
func early() []windowing.Stage {
	return []windowing.Stage{watermarkStage(0), earlyStage("w", 10*time.Second, 0, 10*time.Second, wholeKey, nil)}
}

// earlyOdd does so for odd sums.
func earlyOdd() []windowing.Stage {
	odd := func(n int64) bool { return n%2 == 1 }
	return []windowing.Stage{watermarkStage(0), earlyStage("w", 10*time.Second, 0, 10*time.Second, wholeKey, odd)}
}

// Early rows come out without a row, when the wall clock says so, over restarts.
func TestEarlyRowsWakeTheHost(t *testing.T) {
	r := newRig(t, early, nil).open()
	r.wait(r.offer(events(0, at(1, "a"), at(2, "b"))), "the commit")
	r.clock.pass(10*time.Second - 1)
	r.untouched()
	r.clock.pass(1)
	require.Equal(t, []string{"a=1 revision 1 early", "b=1 revision 1 early"}, fulls(r.take(2)))

	r.wait(r.offer(events(2, at(3, "a"))), "the commit")
	r.clock.pass(5 * time.Second)
	r.untouched()
	r.reopen()
	r.clock.pass(5 * time.Second)
	require.Equal(t, []string{"a=2 revision 2 early"}, fulls(r.take(1)))

	r.wait(r.offer(events(3, at(11, "c"))), "the commit")
	require.Equal(t, []string{"a=2 revision 3 on_time", "b=1 revision 2 on_time"}, fulls(r.take(2)))
	r.clock.pass(time.Hour)
	require.Equal(t, []string{"c=1 revision 1 early"}, fulls(r.take(1)))
	r.clock.pass(time.Hour)
	r.untouched()
}

// A flush puts out the next revisions. What it put out and what comes after it have
// one count.
func TestFlushAfterEarlyRows(t *testing.T) {
	r := newRig(t, earlyOdd, flushing1)
	run := func(from int64, notes ...*note) []string {
		r.open()
		defer r.close()
		s := r.sink(nil)
		for i, n := range notes {
			r.wait(r.offer(events(from+int64(i), n)), "the commit")
			r.clock.pass(10 * time.Second)
			r.wait(r.offer(&Batch{}), "the tick")
			r.wait(r.offer(&Batch{}), "its commit")
		}
		r.end()
		return fulls(s.ended())
	}
	require.Equal(t, []string{"a=1 revision 1 early", "a=1 revision 2 on_time"}, run(0, at(1, "a")))
	require.Empty(t, run(1), "the same again")
	require.Equal(t, []string{"a=0 revision 3 delete"}, run(1, at(2, "a")))
	require.Empty(t, run(2), "taken back already")
	require.Equal(t, []string{"a=3 revision 4 late"}, run(2, at(3, "a")), "the flush has nothing new")
	require.Equal(t, []string{"b=1 revision 1 early", "b=1 revision 2 on_time"}, run(3, at(25, "b")), "a has been out")
}

// Every row id has one value, revisions grow, and the last one of a window is right,
// whenever the host is killed.
func TestEarlyRowsSurviveKills(t *testing.T) {
	rnd := newSeed(t)
	for range 10 {
		r := newRig(t, earlyOdd, flushing1)
		r.limit = 1 + rnd.IntN(5)
		var log []*note
		for i := range 150 {
			log = append(log, at(int64(i/5), fmt.Sprint(rnd.IntN(9))))
		}
		values, last := map[string]string{}, map[string]*note{}
		for done := false; !done; {
			r = r.open()
			s := r.sink(nil)
			next := 0
			for done = true; next < len(log); {
				n := min(1+rnd.IntN(10), len(log)-next)
				acked := r.offer(events(int64(next), log[next:next+n]...))
				next += n
				r.clock.pass(time.Duration(rnd.Int64N(int64(15 * time.Second))))
				if rnd.IntN(4) == 0 {
					r.wait(acked, "the commit")
				}
				if rnd.IntN(20) == 0 {
					done = false
					break
				}
			}
			if done {
				r.end()
			} else {
				r.disk.kill()
				r.close()
			}
			for _, n := range s.ended() {
				text := fmt.Sprint(n.n, n.timing)
				if before, known := values[n.id()]; known {
					require.Equal(t, before, text, n.full())
				}
				values[n.id()] = text
				if old := last[n.rowKey]; old == nil || old.revision < n.revision {
					last[n.rowKey] = n
				}
			}
			if !done {
				next := *r
				next.disk = r.disk.after(t, r.disk.commits())
				r = &next
			}
		}
		sums := map[string]int64{}
		for _, n := range log {
			sums[fmt.Sprint(windowOf(n.at), n.key)]++
		}
		got := map[string]int64{}
		for _, n := range last {
			if n.timing != "delete" {
				got[fmt.Sprint(windowOf(n.at), n.key)] = n.n
			}
		}
		for key, sum := range sums {
			if sum%2 == 0 {
				delete(sums, key)
			}
		}
		require.Equal(t, sums, got)
	}
}
