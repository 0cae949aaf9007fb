package windowing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// filledWindow counts and sums in windows that are filled.
func filledWindow(t testing.TB, s stream, fill Fill, length time.Duration) *Window {
	cfg := s.window(t).config
	cfg.Fill, cfg.FillFor = fill, length
	cfg.Aggregates = parseAggregates(t, "count()", "sum(this.v)")
	return NewWindow(cfg)
}

// filledLines adds to the rows of a stream, with nothing late, the windows in
// which a group had none.
func filledLines(s stream, first, last watermark.Time, zeros bool, length time.Duration) (lines []string) {
	rows := map[modelCell][]Row{}
	groups := map[string]bool{}
	for _, batch := range s.batches {
		for _, row := range batch {
			groups[string(row.Key)] = true
			for _, span := range s.spans(row.Time) {
				c := modelCell{span, string(row.Key)}
				rows[c] = append(rows[c], row)
			}
		}
	}
	spans := map[Span]bool{}
	for at := first; at <= last; at++ {
		for _, span := range s.spans(at) {
			spans[span] = true
		}
	}
	ends := map[string]watermark.Time{} // of the last window with rows
	for _, span := range sortedSpans(spans) {
		for _, key := range slices.Sorted(keysOf(groups)) {
			c := modelCell{span, key}
			if len(rows[c]) > 0 {
				ends[key] = span.End
				sum := int64(0)
				for _, row := range rows[c] {
					sum += row.Args[0].AsInt()
				}
				lines = append(lines, fmt.Sprintf("[%d,%d) %q %d %d", span.Start, span.End, key, len(rows[c]), sum))
			} else if end, ok := ends[key]; ok && span.End <= end.Add(length) {
				nothing := "null"
				if zeros {
					nothing = "0"
				}
				lines = append(lines, fmt.Sprintf("[%d,%d) %q 0 %s", span.Start, span.End, key, nothing))
			}
		}
	}
	return lines
}

func sortedSpans(spans map[Span]bool) (sorted []Span) {
	for span := range spans {
		sorted = append(sorted, span)
	}
	slices.SortFunc(sorted, Span.Compare)
	return sorted
}

func keysOf(groups map[string]bool) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range groups {
			if !yield(key) {
				return
			}
		}
	}
}

// TestFillAgainstDefinition: with restarts and in parts, for every kind of grid.
func TestFillAgainstDefinition(t *testing.T) {
	eachGrid(t, func(t *testing.T, kind gridKind) {
		seed := newSeed(t)
		for i := range uint64(60) {
			r := rand.New(rand.NewPCG(seed, i))
			s := stream{kind: kind, size: time.Duration(2 + r.IntN(20)), offset: time.Duration(r.IntN(50)), delay: 1000}
			s.hop = s.size
			switch kind {
			case slidingGrid:
				s.hop = time.Duration(1 + r.IntN(int(s.size)))
			case cumulativeGrid:
				s.hop = time.Duration(1 + r.IntN(5))
				s.size = s.hop * time.Duration(1+r.IntN(4))
			}
			length := time.Duration(1 + r.IntN(60))
			zeros := r.IntN(2) == 0
			at := watermark.Time(-200)
			for range 1 + r.IntN(12) {
				at = at.Add(time.Duration(r.IntN(70)))
				s.batches = append(s.batches, []Row{testRow(at, string(rune('a'+r.IntN(3))), int64(r.IntN(9)))})
			}
			want := filledLines(s, -300, at.Add(200), zeros, length)
			fill := FillNull
			if zeros {
				fill = FillZero
			}
			last, text := runFilled(t, r, s, fill, length)
			require.Equal(t, want, text, "stream %d of seed %d: %s fill_for %s", i, seed, s, length)

			// Where rows are revised the last ones are the same.
			s.mode = []OutputMode{Append, Update}[r.IntN(2)]
			s.lateness = time.Duration(r.IntN(100))
			if s.mode == Append {
				s.early = time.Duration(1 + r.IntN(3))
			}
			revised, _ := runFilled(t, r, s, fill, length)
			require.Equal(t, last, revised, "stream %d of seed %d: %s fill_for %s", i, seed, s, length)
		}
	})
}

// runFilled closes as far as each row, with restarts by chance, and gives the last
// row of each key and all rows.
func runFilled(t *testing.T, r *rand.Rand, s stream, fill Fill, length time.Duration) (last map[string]string, text []string) {
	last = map[string]string{}
	revisions := map[string]int64{}
	w, store, in := filledWindow(t, s, fill, length), kv.NewMemory(), Instant{Late: watermark.Unset}
	step := func(rows []Row) {
		out := &Output{}
		if len(rows) > 0 {
			w.Process(Instant{Late: in.Late, Close: in.Late, Wall: in.Wall}, rows, out)
		}
		for done := false; !done; {
			done = w.Advance(in, 1+r.IntN(4), out)
			if r.IntN(2) == 0 {
				saveTo(t, w, store)
				if r.IntN(2) == 0 {
					w = filledWindow(t, s, fill, length)
					require.NoError(t, w.Load(store))
				}
			}
		}
		for _, it := range out.items {
			res := it.result
			line := fmt.Sprintf("[%d,%d) %q %s", res.Start, res.End, res.Key, joinValues(res.Values))
			require.Equal(t, revisions[res.RowKey]+1, res.Revision, "%s of %s", line, s)
			revisions[res.RowKey] = res.Revision
			last[res.RowKey], text = line, append(text, line)
		}
		in.Late = in.Close
		in.Wall++
	}
	for _, batch := range s.batches {
		in.Close = batch[0].Time
		step(batch)
	}
	in.Close = watermark.EndOfTime
	step(nil)
	saveTo(t, w, store)
	requireProgressOnly(t, store)
	return last, text
}
