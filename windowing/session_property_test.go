package windowing

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

func (s sessionStream) mode() OutputMode {
	if s.update {
		return Update
	}
	return Append
}

// operator makes a session operator for a stream.
func (s sessionStream) operator(t testing.TB) *Session {
	cfg := SessionConfig{Name: "s", Gap: s.gap, MaxDuration: s.bound, Mode: s.mode(), Early: s.early, PassLate: true,
		GroupBy: []GroupField{{Name: "k", Expr: "this.k"}}, Aggregates: parseAggregates(t, "count()", "sum(this.v)", "collect(this.v)")}
	if s.gap == 0 {
		cfg.GapExpr = "this.gap"
	}
	if s.having {
		cfg.Having = func(res *Result) (bool, error) { return res.Values[1].AsInt()%3 != 0, nil }
	}
	return NewSession(cfg)
}

// sessionLines describes what an output holds, with timing and revision, and
// empties it.
func sessionLines(out *Output) (text []string) {
	for _, it := range out.items {
		if it.result == nil {
			text = append(text, fmt.Sprintf("row at %d flag %d", it.row.Time, it.row.Flag))
			continue
		}
		res := it.result
		line := fmt.Sprintf("[%d,%d) %s", res.Start, res.End, keyText(string(res.Key)))
		if res.Timing != Deleted {
			line += " " + joinValues(res.Values)
		}
		text = append(text, fmt.Sprintf("%s %s %d", line, res.Timing, res.Revision))
	}
	out.Reset()
	return text
}

// sessionChaos runs a stream with restarts, crashes and parts by chance.
type sessionChaos struct {
	t     testing.TB
	r     *rand.Rand
	s     sessionStream
	store kv.Store
	op    *Session
}

// run gives the lines of each batch and of the end of time.
func (c *sessionChaos) run() (output [][]string) {
	c.store, c.op = kv.NewMemory(), c.s.operator(c.t)
	w := watermark.Unset
	for i, in := range c.s.steps() {
		output = append(output, c.step(in, c.s.batches[i]))
		w = in.Close
	}
	output = append(output, c.step(Instant{Late: w, Close: watermark.EndOfTime}, nil))
	saveTo(c.t, c.op, c.store)
	requireProgressOnly(c.t, c.store)
	require.Zero(c.t, c.op.Windows())
	require.Zero(c.t, c.op.Groups())
	require.Zero(c.t, c.op.pending)
	require.False(c.t, c.op.alarm.set)
	return output
}

func (c *sessionChaos) step(in Instant, rows []Row) (text []string) {
	for first := true; ; first = false {
		limit := 1 + c.r.IntN(5)
		once := func() ([]string, bool) {
			out := &Output{}
			if first && len(rows) > 0 {
				c.op.Process(Instant{Late: in.Late, Close: in.Late, Wall: in.Wall}, rows, out)
			}
			done := c.op.Advance(in, limit, out)
			c.check(in, out)
			return sessionLines(out), done
		}
		if c.r.IntN(3) == 0 { // what was not saved is lost and done again
			saveTo(c.t, c.op, c.store)
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
		if c.r.IntN(2) == 0 {
			saveTo(c.t, c.op, c.store)
			if c.r.IntN(2) == 0 {
				c.restart()
			}
		}
		if done {
			return text
		}
	}
}

func (c *sessionChaos) restart() {
	c.op = c.s.operator(c.t)
	require.NoError(c.t, c.op.Load(c.store))
}

// check looks at the invariants of the operator and of its rows.
func (c *sessionChaos) check(in Instant, out *Output) {
	for _, it := range out.items {
		if it.result != nil && in.Late != watermark.Unset && (c.s.early == 0 || it.result.Timing != Deleted) { // nothing stateful follows early rows
			require.GreaterOrEqual(c.t, it.result.Time, in.Late.Add(-SessionHold), "older than the late that is passed on")
		}
	}
	n := 0
	for key, g := range c.op.groups {
		require.NotEmpty(c.t, g.sessions)
		require.Equal(c.t, key, g.key)
		for i, it := range g.sessions {
			n++
			require.Same(c.t, g, it.group)
			require.Same(c.t, it, c.op.closings[it.place].it)
			require.LessOrEqual(c.t, c.op.closings[it.place].end, it.bounds.End)
			require.Less(c.t, it.bounds.Start, it.bounds.End)
			require.True(c.t, c.op.within(it.bounds))
			if i > 0 {
				before := g.sessions[i-1].bounds
				require.Less(c.t, before.Start, it.bounds.Start)
				require.Less(c.t, before.End, it.bounds.End)
				require.False(c.t, before.End >= it.bounds.Start && c.op.within(before.union(it.bounds)), "two sessions are one")
			}
		}
	}
	require.Len(c.t, c.op.closings, n)
}

func testSessionsAgainstOracle(t *testing.T, bounded bool) {
	seed := newSeed(t)
	for i := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, i))
		s := randomSessions(r, bounded)
		c := &sessionChaos{t: t, r: r, s: s}
		require.Equal(t, s.oracle(), c.run(), "stream %d of seed %d: %s", i, seed, s)
	}
}

// TestSessionsAgainstOracle: same rows, same cut, any restarts and parts.
func TestSessionsAgainstOracle(t *testing.T) { testSessionsAgainstOracle(t, false) }

func TestBoundedSessionsAgainstOracle(t *testing.T) { testSessionsAgainstOracle(t, true) }

// TestSessionsAnyCut: where no row is more than the delay behind, any cut, and any
// order inside of the batches, gives the same rows.
func TestSessionsAnyCut(t *testing.T) {
	seed := newSeed(t)
	for i := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, i))
		s := randomSessions(r, false)
		s.update, s.early, s.walls = false, 0, nil
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
				batch := append([]Row(nil), rest[:n]...)
				r.Shuffle(n, func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
				s.batches = append(s.batches, batch)
				rest = rest[n:]
			}
			var got []string
			for _, lines := range (&sessionChaos{t: t, r: r, s: s}).run() {
				got = append(got, lines...)
			}
			if want == nil {
				want = got
			}
			require.Equal(t, want, got, "stream %d of seed %d: %s", i, seed, s)
		}
	}
}

// TestUpdatesEndAsAppend: of update mode and of early rows, a sink that keeps the newest row of each key, and
// deletes what it is told to, ends with what append mode puts out.
func TestUpdatesEndAsAppend(t *testing.T) {
	seed := newSeed(t)
	for i := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, i))
		s := randomSessions(r, i%2 == 0)
		early := time.Duration(r.Int64N(2) * (1 + r.Int64N(200))) // 0: update mode
		keep := func(update bool) map[string]string {
			s.update, s.early = update && early == 0, 0
			if update {
				s.early = early
			}
			op, out := s.operator(t), &Output{}
			last := watermark.Unset
			for n, in := range s.steps() {
				op.Process(Instant{Late: in.Late, Close: in.Late, Wall: in.Wall}, s.batches[n], out)
				require.True(t, op.Advance(in, 1<<20, out))
				last = in.Close
			}
			require.True(t, op.Advance(Instant{Late: last, Close: watermark.EndOfTime}, 1<<20, out))
			rows, revisions := map[string]string{}, map[string]int64{}
			for _, it := range out.items {
				res := it.result
				if res == nil {
					continue
				}
				require.Equal(t, revisions[res.RowKey]+1, res.Revision, "revisions of %s", res.RowKey)
				revisions[res.RowKey] = res.Revision
				if res.Timing == Deleted {
					require.Contains(t, rows, res.RowKey)
					delete(rows, res.RowKey)
					continue
				}
				rows[res.RowKey] = joinValues(res.Values)
			}
			return rows
		}
		require.Equal(t, keep(false), keep(true), "stream %d of seed %d: %s", i, seed, s)
	}
}
