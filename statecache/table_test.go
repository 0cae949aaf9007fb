package statecache

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRanges(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	const n = 60
	key := func(i int) string { return fmt.Sprintf("%02d", i) }
	for range 300 {
		var set ranges
		var in [n]bool
		for range 1 + r.IntN(12) {
			from, to := r.IntN(n), r.IntN(n+1)
			if from >= to {
				continue
			}
			end := key(to)
			if to == n {
				end = ""
			}
			set.add(key(from), end)
			for i := from; i < to; i++ {
				in[i] = true
			}
		}
		last := "-"
		for c := set.m.Seek(""); c.Valid(); c.Next() {
			require.NotEqual(t, "", last, "a range to the end is the last")
			require.Less(t, last, c.Key(), "disjoint, and not touching")
			last = *c.Value()
		}
		for i := range n {
			to, ok := set.covers(key(i))
			require.Equal(t, in[i], ok, i)
			end := i
			for ; end < n && in[end]; end++ {
			}
			if ok && end < n {
				require.Equal(t, key(end), to)
			}
		}
	}
}

func TestRangesOfWholeSpace(t *testing.T) {
	var set ranges
	_, ok := set.covers("")
	require.False(t, ok)
	set.add("b", "c")
	set.add("", "")
	require.Equal(t, 1, set.m.Len())
	to, ok := set.covers("anything")
	require.True(t, ok)
	require.Empty(t, to)
	set.add("x", "y")
	require.Equal(t, 1, set.m.Len())
}
