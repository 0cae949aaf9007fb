package windowing

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
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

// stream is a random case: rows in batches, W = newest - delay.
type stream struct {
	size, offset, delay time.Duration
	batches             [][]Row
}

// randomStream has event times around one instant, which may be an end of time.
func randomStream(r *rand.Rand) stream {
	sizes := []time.Duration{1, 2, 7, 10, 60, 1000, time.Second, math.MaxInt64}
	centres := []watermark.Time{0, 0, 1_700_000_000_000_000_000, -1_700_000_000_000_000_000, watermark.Min, watermark.Max}
	s := stream{size: sizes[r.IntN(len(sizes))], offset: time.Duration(edgeInt(r)), delay: time.Duration(r.Int64N(100))}
	centre := centres[r.IntN(len(centres))]
	spread := 1 + r.Int64N(500)
	n := 1 + r.IntN(200)
	drift := r.Int64N(10)
	for i := 0; i < n; {
		var batch []Row
		for range 1 + r.IntN(1+r.IntN(20)) {
			i++
			at := centre.Add(time.Duration(int64(i)*drift + r.Int64N(spread) - spread/2))
			key := []agg.Value{agg.Null(), agg.Int(int64(r.IntN(3))), agg.String(string(rune('a' + r.IntN(3))))}[r.IntN(3)]
			batch = append(batch, Row{Time: at, Arrival: int64(i), Key: key.AppendKey(nil), Args: []agg.Value{agg.Int(int64(i))}})
		}
		s.batches = append(s.batches, batch)
	}
	return s
}

func (s stream) window(t testing.TB) *Window {
	grid, err := NewTumbling(s.size, s.offset)
	require.NoError(t, err)
	return NewWindow(WindowConfig{
		Name: "w", Assigner: grid, GroupBy: []GroupField{{Name: "k", Expr: "this.k"}},
		Aggregates: parseAggregates(t, "count()", "sum(this.v)", "first(this.v)", "last(this.v)"), PassLate: true,
	})
}

// steps gives W before and after each batch.
func (s stream) steps() (pairs []Instant) {
	w := watermark.Unset
	for _, batch := range s.batches {
		in := Instant{Late: w, Close: w}
		for _, row := range batch {
			in.Close = max(in.Close, row.Time.Add(-s.delay))
		}
		w = in.Close
		pairs = append(pairs, in)
	}
	return pairs
}

// oracle gives the lines of each batch, and of the end of time, by the definition
// of a tumbling window and nothing else.
func (s stream) oracle() (output [][]string) {
	type cell struct {
		span Span
		key  string
	}
	open := map[cell][]Row{}
	closeAt := func(w watermark.Time) (lines []string) {
		var due []cell
		for c := range open {
			if c.span.End <= w {
				due = append(due, c)
			}
		}
		sort.Slice(due, func(i, j int) bool {
			a, b := due[i], due[j]
			switch {
			case a.span.End != b.span.End:
				return a.span.End < b.span.End
			case a.span.Start != b.span.Start:
				return a.span.Start < b.span.Start
			}
			return a.key < b.key
		})
		for _, c := range due {
			lines = append(lines, s.oracleLine(c.span, c.key, open[c]))
			delete(open, c)
		}
		return lines
	}
	for i, in := range s.steps() {
		var lines []string
		for _, row := range s.batches[i] {
			span := s.oracleSpan(row.Time)
			if span.End <= in.Late {
				lines = append(lines, fmt.Sprintf("row at %d flag %d", row.Time, Late))
				continue
			}
			c := cell{span, string(row.Key)}
			open[c] = append(open[c], row)
		}
		output = append(output, append(lines, closeAt(in.Close)...))
	}
	return append(output, closeAt(watermark.EndOfTime))
}

// oracleSpan looks for k with k*size+offset <= t < (k+1)*size+offset.
func (s stream) oracleSpan(t watermark.Time) Span {
	size := big.NewInt(int64(s.size))
	k := new(big.Int).Sub(big.NewInt(int64(t)), big.NewInt(int64(s.offset)))
	k.Div(k, size)
	start := new(big.Int).Add(k.Mul(k, size), big.NewInt(int64(s.offset)))
	return Span{Start: cut(start), End: cut(new(big.Int).Add(start, size))}
}

func (s stream) oracleLine(span Span, key string, rows []Row) string {
	sum, first, last := int64(0), rows[0], rows[0]
	for _, row := range rows {
		sum += row.Args[0].AsInt()
		if row.Time < first.Time || row.Time == first.Time && row.Arrival < first.Arrival {
			first = row
		}
		if row.Time > last.Time || row.Time == last.Time && row.Arrival > last.Arrival {
			last = row
		}
	}
	v, _, err := agg.DecodeKey([]byte(key))
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("[%d,%d) %s %d %d %d %d", span.Start, span.End, v.AppendJSON(nil), len(rows), sum, first.Args[0].AsInt(), last.Args[0].AsInt())
}

// chaos runs a stream with restarts, crashes and parts by chance.
type chaos struct {
	t     testing.TB
	r     *rand.Rand
	s     stream
	store kv.Store
	w     *Window
}

// run gives the lines of each batch and of the end of time.
func (c *chaos) run() (output [][]string) {
	c.store, c.w = kv.NewMemory(), c.s.window(c.t)
	for i, in := range c.s.steps() {
		output = append(output, c.step(in, c.s.batches[i]))
	}
	w := c.s.steps()[len(c.s.batches)-1].Close
	output = append(output, c.step(Instant{Late: w, Close: watermark.EndOfTime}, nil))
	saveTo(c.t, c.w, c.store)
	requireProgressOnly(c.t, c.store)
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
				c.w.Process(Instant{Late: in.Late, Close: in.Late}, rows, out)
			}
			done := c.w.Advance(in, limit, out)
			return lines(out), done
		}
		if c.r.IntN(3) == 0 { // what was not saved is lost and done again
			saveTo(c.t, c.w, c.store)
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
			saveTo(c.t, c.w, c.store)
			if c.r.IntN(2) == 0 {
				c.restart()
			}
		}
		if done {
			return text
		}
	}
}

func (c *chaos) restart() {
	c.w = c.s.window(c.t)
	require.NoError(c.t, c.w.Load(c.store))
}

// TestTumblingAgainstOracle: same rows, same cut, any restarts and parts.
func TestTumblingAgainstOracle(t *testing.T) {
	seed := newSeed(t)
	for i := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, i))
		s := randomStream(r)
		c := &chaos{t: t, r: r, s: s}
		require.Equal(t, s.oracle(), c.run(), "stream %d of seed %d: size %s offset %s delay %s", i, seed, s.size, s.offset, s.delay)
	}
}

// TestTumblingAnyCut: where no row is more than the delay behind, any cut gives
// the same rows.
func TestTumblingAnyCut(t *testing.T) {
	seed := newSeed(t)
	for i := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, i))
		s := randomStream(r)
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
			require.Equal(t, want, got, "stream %d of seed %d", i, seed)
		}
	}
}
