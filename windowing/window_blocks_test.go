package windowing

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// TestWindowBlocksAgainstOracle: windows of so many slices that they are merged by
// block, with late rows that change blocks, restarts and parts.
func TestWindowBlocksAgainstOracle(t *testing.T) {
	seed := newSeed(t)
	for i := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, i))
		s := stream{kind: slidingGrid, size: 200, hop: time.Duration(1 + r.IntN(2)), delay: time.Duration(r.IntN(40)),
			offset: time.Duration(r.IntN(500) - 250), mode: OutputMode(i % 2), lateness: time.Duration(i % 4 / 2 * 30)}
		centre := []watermark.Time{0, 1_700_000_000_000_000_000, watermark.Min, watermark.Max.Add(-250)}[r.IntN(4)]
		for n := range 25 {
			var batch []Row
			for k := range 12 {
				row := testRow(centre.Add(time.Duration(n*10+r.IntN(60)-30)), string(rune('a'+r.IntN(2))), int64(n*100+k))
				row.Arrival = int64(n*100 + k)
				batch = append(batch, row)
			}
			s.batches = append(s.batches, batch)
		}
		c := &chaos{t: t, r: r, s: s}
		want, got := s.oracle(), c.run()
		for n := range want {
			require.Equal(t, want[n], got[n], "step %d of stream %d of seed %d: %s", n, i, seed, s)
		}
		require.Empty(t, c.w.blocks.tables)
	}
}

// TestWindowBlocksAreUsed: a window of 3600 slices merges few tables.
func TestWindowBlocksAreUsed(t *testing.T) {
	grid, err := NewSliding(time.Hour, time.Second, 0)
	require.NoError(t, err)
	w, out := benchGrid(t, grid, Append), &Output{}
	in := Instant{Late: watermark.Unset}
	for i := range 3700 {
		row := testRow(watermark.Time(i)*watermark.Time(time.Second), "a", 1)
		w.Process(in, []Row{row}, out)
	}
	window := Span{Start: 90 * watermark.Time(time.Second), End: 3690 * watermark.Time(time.Second)}
	require.Len(t, w.state.within(window), 3600)
	require.Less(t, len(w.pieces(window)), 200)
	blocks := len(w.blocks.tables)
	w.Process(in, []Row{testRow(watermark.Time(time.Hour/2), "a", 1)}, out)
	require.Len(t, w.blocks.tables, blocks-1, "a row drops the block that it changes, no other")
}
