package windowing

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// windowsOf gives all windows of a slice, in their order.
func windowsOf(grid Assigner, slice, after Span) (windows []Span) {
	for {
		window, ok := grid.Next(slice, after)
		if !ok {
			return windows
		}
		windows, after = append(windows, window), window
	}
}

// TestGridsAgainstDefinition compares the windows of a time with a walk over the
// grid in arithmetic that cannot overflow.
func TestGridsAgainstDefinition(t *testing.T) {
	eachGrid(t, func(t *testing.T, kind gridKind) {
		seed := newSeed(t)
		r := rand.New(rand.NewPCG(seed, 7))
		for range 3000 {
			s := randomStream(r, kind)
			at := s.batches[0][0].Time
			grid := s.grid(t)
			want := s.spans(at)
			slices.SortFunc(want, Span.Compare)
			slice := grid.Slice(at)
			require.True(t, slice.Contains(at), "%s at %d", s, at)
			require.Equal(t, slice, grid.Slice(slice.Start))
			require.Equal(t, slice, grid.Slice(slice.last()))
			require.Equal(t, want, windowsOf(grid, slice, endedBy(watermark.Unset)), "%s at %d", s, at)
			after := want[r.IntN(len(want))].End.Add(time.Duration(r.Int64N(3) - 1))
			var open []Span
			for _, w := range want {
				if w.End > after {
					open = append(open, w)
				}
			}
			require.Equal(t, open, windowsOf(grid, slice, endedBy(after)), "%s at %d after %d", s, at, after)
			for _, w := range want {
				require.True(t, w.Start <= slice.Start && slice.End <= w.End, "a slice lies in all of its windows")
			}
		}
	})
}

func TestSlidingSlices(t *testing.T) {
	grid, err := NewSliding(12, 5, 0) // cuts at 5k and 5k+2
	require.NoError(t, err)
	for at, want := range map[watermark.Time]Span{0: {0, 2}, 1: {0, 2}, 2: {2, 5}, 4: {2, 5}, 5: {5, 7}, -1: {-3, 0}, -3: {-3, 0}, -4: {-5, -3}} {
		require.Equal(t, want, grid.Slice(at), at)
	}
	require.Equal(t, []Span{{-10, 2}, {-5, 7}, {0, 12}}, windowsOf(grid, Span{0, 2}, endedBy(watermark.Unset)))
	require.Equal(t, []Span{{-5, 7}, {0, 12}}, windowsOf(grid, Span{2, 5}, endedBy(watermark.Unset)))
	require.Equal(t, []Span{{0, 12}}, windowsOf(grid, Span{0, 2}, endedBy(7)))
	require.Empty(t, windowsOf(grid, Span{0, 2}, endedBy(12)))
}

func TestCumulativeWindows(t *testing.T) {
	grid, err := NewCumulative(9, 3, 1)
	require.NoError(t, err)
	require.Equal(t, Span{4, 7}, grid.Slice(6))
	require.Equal(t, []Span{{1, 7}, {1, 10}}, windowsOf(grid, Span{4, 7}, endedBy(watermark.Unset)))
	require.Equal(t, []Span{{1, 10}}, windowsOf(grid, Span{4, 7}, endedBy(7)))
	require.Equal(t, Span{-2, 1}, grid.Slice(0))
	require.Equal(t, []Span{{-8, 1}}, windowsOf(grid, Span{-2, 1}, endedBy(watermark.Unset)))
}

func TestOverlappingGridsRefuse(t *testing.T) {
	for _, c := range []struct {
		size, slide time.Duration
		want        error
		says        string
	}{
		{0, 1, ErrSize, "size 0s"},
		{-1, 1, ErrSize, "size -1ns"},
		{math.MinInt64, 1, ErrSize, "size"},
		{10, 0, ErrSlide, "slide 0s"},
		{10, -1, ErrSlide, "slide -1ns"},
		{10, 11, ErrSlide, "slide 11ns is larger than size 10ns"},
		{time.Hour, time.Millisecond, ErrSlide, "larger slide"},
		{MaxOverlap + 1, 1, ErrSlide, "larger slide"},
	} {
		_, err := NewSliding(c.size, c.slide, 0)
		require.ErrorIs(t, err, c.want)
		require.ErrorContains(t, err, c.says)
	}
	_, err := NewSliding(MaxOverlap, 1, 0)
	require.NoError(t, err)
	_, err = NewSliding(math.MaxInt64, math.MaxInt64, 0)
	require.NoError(t, err)
	for _, c := range []struct {
		size, step time.Duration
		want       error
	}{{0, 1, ErrSize}, {10, 0, ErrSlide}, {10, -5, ErrSlide}, {10, 3, ErrSlide}, {10, 20, ErrSlide}, {MaxOverlap + 1, 1, ErrSlide}} {
		_, err := NewCumulative(c.size, c.step, 0)
		require.ErrorIs(t, err, c.want, "%+v", c)
	}
}

func TestOverlappingSettings(t *testing.T) {
	sliding, err := NewSliding(time.Hour, 10*time.Minute, -time.Minute)
	require.NoError(t, err)
	require.Equal(t, []Setting{{"size", "1h0m0s"}, {"slide", "10m0s"}, {"offset", "9m0s"}}, sliding.Settings())
	cumulative, err := NewCumulative(time.Hour, 10*time.Minute, -time.Minute)
	require.NoError(t, err)
	require.Equal(t, []Setting{{"size", "1h0m0s"}, {"step", "10m0s"}, {"offset", "59m0s"}}, cumulative.Settings())
}
