package host

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A set of runs is the same as a map, whatever is added, and its runs neither
// touch nor overlap.
func TestIntervals(t *testing.T) {
	r := newSeed(t)
	for _, base := range []int64{-20, 0, math.MinInt64, math.MaxInt64 - 41} {
		for range 200 {
			var set intervals
			naive := map[int64]bool{}
			for range r.IntN(60) {
				off := base + r.Int64N(40)
				before := len(set)
				next, run, fresh, gone := set.add(off)
				set = next
				require.Equal(t, !naive[off] && len(set) > before, fresh, "fresh says that a run is new")
				naive[off] = true
				require.LessOrEqual(t, run.from, off)
				require.Less(t, off, run.to)
				for _, from := range gone {
					i := set.find(from)
					require.True(t, set[i].from != from, "a run that is gone starts no run any more")
				}
			}
			for off := base; off < base+41; off++ {
				require.Equal(t, naive[off], set.has(off), "%d in %v", off, set)
			}
			for i, run := range set {
				require.Less(t, run.from, run.to)
				if i > 0 {
					require.Less(t, set[i-1].to, run.from)
				}
			}
		}
	}
}
