package windowing

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// newSeed is random, or the one to be replayed: WINDOWED_SEED=... go test.
func newSeed(t testing.TB) uint64 {
	seed := rand.Uint64()
	if text := os.Getenv("WINDOWED_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("WINDOWED_SEED=%d replays this", seed)
	return seed
}

// chaos runs a stream with restarts, crashes and parts by chance.
type chaos struct {
	t      testing.TB
	r      *rand.Rand
	s      stream
	bound  int64 // bytes of state that may stay in memory, 0: all of it
	store  kv.Store
	w      *Window
	flight *kv.Batch // what was saved and is not in the store yet
}

// run gives the lines of each batch and of the end of time.
func (c *chaos) run() (output [][]string) {
	c.store = kv.NewMemory()
	c.w = c.window()
	for i, in := range c.s.steps() {
		output = append(output, c.step(in, c.s.batches[i]))
	}
	w := c.s.steps()[len(c.s.batches)-1].Close
	output = append(output, c.step(Instant{Late: w, Close: watermark.EndOfTime}, nil))
	c.save()
	if c.s.mode == Complete {
		return output
	}
	requireProgressOnly(c.t, c.store)
	require.Empty(c.t, c.w.revisions.bySpan)
	require.Zero(c.t, c.w.revisions.stirs)
	require.False(c.t, c.w.early.set)
	require.Zero(c.t, c.w.Windows())
	require.Zero(c.t, c.w.Groups())
	return output
}

func (c *chaos) step(in Instant, rows []Row) (text []string) {
	for first := true; ; first = false {
		limit := 1 + c.r.IntN(5)
		once := func() ([]string, bool) {
			out := &Output{}
			if first && len(rows) > 0 {
				c.w.Process(Instant{Late: in.Late, Close: in.Late, Wall: in.Wall}, rows, out)
			}
			done := c.w.Advance(in, limit, out)
			return lines(out), done
		}
		if c.r.IntN(3) == 0 { // what was not saved is lost and done again
			c.save()
			lost, _ := once()
			c.restart()
			again, done := once()
			require.Equal(c.t, lost, again)
			text = append(text, again...)
			if done {
				return text
			}
			continue
		}
		part, done := once()
		text = append(text, part...)
		switch c.r.IntN(4) {
		case 0:
			c.save()
		case 1:
			c.save()
			c.restart()
		case 2: // it is on its way while the next rows come
			c.land()
			c.flight = &kv.Batch{}
			c.w.Save(c.flight)
		}
		if done {
			return text
		}
	}
}

func (c *chaos) restart() {
	c.land()
	c.w = c.window()
	require.NoError(c.t, c.w.Load(c.store))
}

func (c *chaos) window() *Window {
	w := c.s.window(c.t)
	if c.bound > 0 {
		w.Bound(c.bound, c.store)
	}
	return w
}

// save commits what changed.
func (c *chaos) save() {
	c.land()
	saveTo(c.t, c.w, c.store)
	c.w.Committed()
}

// land commits what is on its way.
func (c *chaos) land() {
	if c.flight != nil {
		require.NoError(c.t, c.store.Commit(c.flight))
		c.flight = nil
		c.w.Committed()
	}
}

// eachGrid runs a test for every kind of grid.
func eachGrid(t *testing.T, test func(t *testing.T, kind gridKind)) {
	for name, kind := range map[string]gridKind{"tumbling": tumblingGrid, "sliding": slidingGrid, "cumulative": cumulativeGrid} {
		t.Run(name, func(t *testing.T) { test(t, kind) })
	}
}

// TestWindowAgainstOracle: same rows, same cut, any restarts and parts.
func TestWindowAgainstOracle(t *testing.T) {
	eachGrid(t, func(t *testing.T, kind gridKind) {
		seed := newSeed(t)
		for i := range uint64(150) {
			r := rand.New(rand.NewPCG(seed, i))
			s := randomStream(r, kind)
			s.mode = OutputMode(max(0, r.IntN(5)-2))
			if s.mode != Complete && r.IntN(2) == 0 {
				s.lateness = time.Duration(r.Int64N(1 + r.Int64N(300)))
			}
			s.having = r.IntN(3) == 0
			if s.mode == Append && r.IntN(2) == 0 {
				s.early = time.Duration(1 + r.Int64N(200))
			}
			s.walls = randomWalls(r, len(s.batches))
			c := &chaos{t: t, r: r, s: s, bound: []int64{0, 1, 1000}[r.IntN(3)]}
			want, got := s.oracle(), c.run()
			for n := range want { // a whole stream is too much to read
				require.Equal(t, want[n], got[n], "step %d of stream %d of seed %d: %s", n, i, seed, s)
			}
		}
	})
}

// randomWalls gives a wall clock for each batch.
func randomWalls(r *rand.Rand, n int) (walls []watermark.Time) {
	at := watermark.Time(1_700_000_000_000_000_000)
	for range n {
		at = at.Add(time.Duration(r.Int64N(100)))
		walls = append(walls, at)
	}
	return walls
}

// TestEarlyRowsLeaveFinalsAlone: what comes out at the close is the same with and
// without early rows, but for the number of its revision.
func TestEarlyRowsLeaveFinalsAlone(t *testing.T) {
	eachGrid(t, func(t *testing.T, kind gridKind) {
		seed := newSeed(t)
		for i := range uint64(50) {
			r := rand.New(rand.NewPCG(seed, i))
			s := randomStream(r, kind)
			s.walls = randomWalls(r, len(s.batches))
			run := func() (finals []string) {
				for _, text := range (&chaos{t: t, r: r, s: s}).run() {
					for _, line := range text {
						line, _, _ = strings.Cut(line, " on_time")
						if !strings.Contains(line, " early ") {
							finals = append(finals, line)
						}
					}
				}
				return finals
			}
			want := run()
			s.early = time.Duration(1 + r.Int64N(200))
			require.Equal(t, want, run(), "stream %d of seed %d: %s", i, seed, s)
		}
	})
}

// TestWindowAnyCut: where no row is more than the delay behind, any cut gives
// the same finals.
func TestWindowAnyCut(t *testing.T) {
	eachGrid(t, func(t *testing.T, kind gridKind) {
		seed := newSeed(t)
		for i := range uint64(50) {
			anyCut(t, rand.New(rand.NewPCG(seed, i)), kind, fmt.Sprintf("stream %d of seed %d", i, seed))
		}
	})
}

func anyCut(t *testing.T, r *rand.Rand, kind gridKind, name string) {
	s := randomStream(r, kind)
	newest := watermark.Min
	var rows []Row
	for _, batch := range s.batches {
		for _, row := range batch {
			newest = max(newest, row.Time)
			row.Time = max(row.Time, newest.Add(-s.delay))
			rows = append(rows, row)
		}
	}
	var want []string
	for range 3 {
		s.batches = nil
		for rest := rows; len(rest) > 0; {
			n := 1 + r.IntN(min(len(rest), 20))
			s.batches = append(s.batches, rest[:n])
			rest = rest[n:]
		}
		var got []string
		for _, lines := range (&chaos{t: t, r: r, s: s}).run() {
			got = append(got, lines...)
		}
		if want == nil {
			want = got
		}
		require.Equal(t, want, got, name)
	}
}
