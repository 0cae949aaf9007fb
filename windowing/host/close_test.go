package host

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// emittedBy gives the rows that a commit puts into the outbox.
func emittedBy(t testing.TB, data []byte) (rows []*note) {
	put := func(key, value []byte) {
		if !strings.HasPrefix(string(key), outboxPrefix) {
			return
		}
		b, err := newOutbox(noteEdge{}, false).read(key[len(outboxPrefix):], value)
		assert.NoError(t, err)
		for _, row := range b.rows {
			rows = append(rows, row.message.(*note))
		}
	}
	assert.NoError(t, kv.ReadBatch(data, put, func(_, _ []byte) {}))
	return rows
}

// rows counts the rows in the outbox.
func (d *disk) rows(t testing.TB) (n int) {
	prefix := []byte(outboxPrefix)
	require.NoError(t, d.Scan(prefix, kv.PrefixEnd(prefix), func(key, value []byte) error {
		b, err := newOutbox(noteEdge{}, false).read(key[len(prefix):], value)
		if err == nil {
			n += len(b.rows)
		}
		return err
	}))
	return n
}

// A close of many groups comes out in parts, each a commit, and no further than
// the reader follows.
func TestLargeCloseComesInParts(t *testing.T) {
	const groups, unread = 200_000, 10_000
	r := newRig(t, sums, func(c *Config) { c.Limits.UnreadRows = unread }).open()
	for from := int64(0); from < groups; from += 20_000 {
		var notes []*note
		for i := range int64(20_000) {
			notes = append(notes, at(1, fmt.Sprintf("%06d", from+i)))
		}
		r.offer(events(from, notes...))
	}
	// mu protects emitted and taken.
	var mu sync.Mutex
	emitted, taken := 0, 0
	r.disk.OnCommit(func(b *kv.Batch) error {
		part := len(emittedBy(t, b.Bytes()))
		mu.Lock()
		defer mu.Unlock()
		emitted += part
		assert.LessOrEqual(t, part, windowing.PartLimit)
		// Deliveries that are on their way are not counted as taken here.
		assert.Less(t, emitted-taken, unread+3*windowing.PartLimit)
		return nil
	})
	acked := r.offer(events(groups, at(10, "next")))
	for n := 0; n < groups; {
		d := r.next()
		require.True(t, n > 0 || open1(acked), "the batch is one step")
		require.LessOrEqual(t, len(d.Messages), 1000)
		for _, row := range notesOf(d) {
			require.Equal(t, fmt.Sprintf("%06d=1", n), fmt.Sprintf("%s=%d", row.key, row.n))
			n++
		}
		mu.Lock()
		taken = n
		mu.Unlock()
		d.Settle(nil)
	}
	r.wait(acked, "the end of the step")
	r.wait(r.offer(events(groups+1, at(11, "next"))), "the next batch")
}

// Nobody reads: the close stops where the bound is, and nothing more is applied.
func TestCloseWithoutReader(t *testing.T) {
	r := newRig(t, sums, func(c *Config) { c.Limits.UnreadRows = 50 })
	r.limit = 20
	r.open()
	var notes []*note
	for i := range 1000 {
		notes = append(notes, at(1, fmt.Sprintf("%04d", i)))
	}
	r.wait(r.offer(events(0, notes...)), "the events")
	acked := r.offer(events(1000, at(10, "next")))
	later := r.offer(events(1001, at(11, "next")))
	require.Eventually(t, func() bool { return r.disk.now(t).rows(t) >= 50 }, patience, time.Millisecond)
	r.reopen()
	require.LessOrEqual(t, r.disk.rows(t), 50+20, "a restart emits no further part either")
	require.True(t, open1(acked))
	require.True(t, open1(later))
	rows := r.take(1000)
	require.Equal(t, "0999", rows[999].key)
}

// chained are two windows of 10 s, the second by the first letter of the key.
func chained() []windowing.Stage {
	return append(sums(), windowStage("w2", 10*time.Second, firstLetter))
}

// Stopping dead between any two commits of a close in parts loses nothing, and
// what comes again is the same.
func TestKillBetweenAnyTwoCommits(t *testing.T) {
	rnd := newSeed(t)
	var source []*note
	for window := range int64(4) {
		for i := range 23 {
			source = append(source, at(10*window+1, fmt.Sprintf("%c%d", 'a'+i%3, i)))
		}
	}
	source = append(source, at(100, "z"))
	for name, stages := range map[string]func() []windowing.Stage{"one window": sums, "two windows": chained} {
		t.Run(name, func(t *testing.T) {
			// offer hands the source over, cut anyhow, and plays to the end.
			offer := func(r *rig) []*note {
				s := r.sink(nil)
				for from := 0; from < len(source); {
					to := min(len(source), from+1+rnd.IntN(40))
					r.offer(events(int64(from), source[from:to]...))
					from = to
				}
				r.end()
				return s.ended()
			}
			r := newRig(t, stages, nil)
			r.limit = 5
			want := byID(t, nil, offer(r.open()))
			commits := r.disk.commits()
			require.Greater(t, commits, 5)
			for n := range commits + 1 {
				var before []*note
				for _, data := range r.disk.log[:n] {
					before = append(before, emittedBy(t, data)...)
				}
				next := r.backTo(n)
				got := byID(t, byID(t, nil, before), offer(next))
				require.Equal(t, want, got, "stopped after %d of %d commits", n, commits)
				require.Zero(t, next.disk.now(t).keys(t, outboxPrefix))
				next.close()
			}
		})
	}
}

// byID adds rows to those that are known. Rows of one id must be the same.
func byID(t testing.TB, known map[string]string, rows []*note) map[string]string {
	known = maps.Clone(known)
	if known == nil {
		known = map[string]string{}
	}
	for _, n := range rows {
		text := fmt.Sprintf("%s %s", n, n.timing)
		if old, ok := known[n.id()]; ok {
			require.Equal(t, old, text, "two rows of id %s", n.id())
		}
		known[n.id()] = text
	}
	return known
}

// The same at random points of random streams, with a sink that refuses.
func TestKillAtRandom(t *testing.T) {
	rnd := newSeed(t)
	for range 30 {
		var source []*note
		counts := map[string]int64{}
		for i := range int64(100 + rnd.IntN(300)) {
			n := at(i/10, fmt.Sprintf("%c%d", 'a'+rnd.IntN(3), rnd.IntN(10)))
			counts[fmt.Sprint(i/100, n.key)]++
			source = append(source, n)
		}
		source = append(source, at(1000, "z"))
		r := newRig(t, sums, nil)
		r.limit = 1 + rnd.IntN(10)
		got := map[string]int64{}
		for round := 0; ; round++ {
			r = r.kill()
			own := rand.New(rand.NewPCG(rnd.Uint64(), 0))
			s := r.sink(func(rows []*note) (failed []int) {
				for i := range rows {
					if own.IntN(5) == 0 {
						failed = append(failed, i)
					}
				}
				return failed
			})
			stop := len(source)
			if round < 5 {
				stop = rnd.IntN(len(source) + 1)
			}
			for from := 0; from < stop; {
				to := min(stop, from+1+rnd.IntN(30))
				acked := r.offer(events(int64(from), source[from:to]...))
				if from = to; rnd.IntN(4) == 0 {
					r.wait(acked, "an acknowledgement")
				}
			}
			if stop < len(source) || round < 5 {
				s.collect(got)
				continue
			}
			r.end()
			s.ended()
			s.collect(got)
			break
		}
		require.Equal(t, counts, got)
	}
}

// collect adds the sums of windows to those that are known.
func (s *sink) collect(got map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.rows {
		got[fmt.Sprint(int64(n.at/(10*second)), n.key)] = n.n
	}
}

// Rows come out in the order (end, start, group), also in parts.
func TestOrderOfRows(t *testing.T) {
	r := newRig(t, sums, nil)
	r.limit = 3
	r.open()
	var notes []*note
	for window := range int64(3) {
		for i := range 7 {
			notes = append(notes, at(10*(2-window)+1, fmt.Sprint(6-i)))
		}
	}
	r.offer(events(0, notes...))
	r.offer(events(100, at(50, "z")))
	rows := r.take(21)
	require.True(t, slices.IsSortedFunc(rows, func(a, b *note) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.key, b.key)
	}))
}
