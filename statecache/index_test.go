package statecache

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// TestSpans holds deleted ranges and their ranks against one number for each key.
func TestSpans(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	const n = 40
	key := func(i int) string { return fmt.Sprintf("%02d", i) }
	end := func(i int) string {
		if i == n {
			return ""
		}
		return key(i)
	}
	for range 500 {
		var set spans
		var ranks [n]uint64
		for rank := uint64(1); rank < uint64(2+r.IntN(15)); rank++ {
			from, to := r.IntN(n), r.IntN(n+1)
			set.add(key(from), end(to), rank)
			for i := from; i < to; i++ {
				ranks[i] = rank
			}
		}
		finder := spanFinder{spans: &set}
		for range 3 * n {
			i := r.IntN(n)
			to, rank, ok := set.covers(key(i))
			require.Equal(t, ranks[i] != 0, ok)
			require.Equal(t, ranks[i], rank)
			if last := i; ok {
				for ; last < n && ranks[last] == rank; last++ {
				}
				require.True(t, to != "" && to <= end(last) || end(last) == "", "%q is past %q", to, end(last))
			}
			rank, ok = finder.find(key(i))
			require.Equal(t, ranks[i] != 0, ok)
			require.Equal(t, ranks[i], rank)

			from, to, ok := set.next(key(i))
			first := i
			for ; first < n && ranks[first] == 0; first++ {
			}
			require.Equal(t, first < n, ok)
			if last := first; ok {
				for ; last < n && ranks[last] != 0; last++ {
				}
				require.LessOrEqual(t, from, key(first))
				require.Equal(t, end(last), to, "ranges that touch are one")
			}
		}
	}
}

// TestIndex holds the index of some batches against a map.
func TestIndex(t *testing.T) {
	for _, keys := range []int{1, 20, 5000} {
		m := newMachine(t, uint64(time.Now().UnixNano()), keys)
		var x index
		_, found := x.get([]byte("k"))
		require.False(t, found, "an empty index")
		decided := map[string]bool{}
		for range 300 {
			var b kv.Batch
			m.model = m.batch(&b)
			require.NoError(t, x.apply(b.Bytes()))
			require.NoError(t, kv.ReadBatch(b.Bytes(),
				func(key, _ []byte) { decided[string(key)] = true },
				func(from, to []byte) {
					for i := range keys {
						if k := fmt.Sprintf("k%05d", i); string(from) <= k && before(k, string(to)) {
							decided[k] = true
						}
					}
				}))
			for range 5 {
				k := m.key()
				v, found := x.get([]byte(k))
				want, there := m.model[k]
				require.Equal(t, there, v != nil, "%.9q", k)
				require.Equal(t, want, string(v))
				require.Equal(t, found, x.decides(hashOf([]byte(k)), []byte(k)))
				if strings.HasPrefix(k, "k0") {
					require.Equal(t, decided[k], found, "%q", k)
				}
			}
		}
	}
}

// TestIndexOfOneHash: keys whose hashes agree are still different keys.
func TestIndexOfOneHash(t *testing.T) {
	batch := []byte("abcdefgh")
	var x index
	x.batches = [][]byte{batch}
	var some []indexed
	for i := range uint32(8) {
		some = append(some, indexed{hash: math.MaxUint32, at: i, size: 1})
	}
	for i := range some[:4] {
		some[i].hash = 0
	}
	x.batches[0] = append([]byte{0}, batch...)
	for i := range some {
		some[i].at++
	}
	x.enter(some)
	x.enter(some)
	require.Len(t, x.entries, 8)
	for _, e := range some {
		require.Equal(t, e.at, x.find(e.hash, x.key(&e)).at)
		require.Nil(t, x.find(^e.hash, x.key(&e)))
	}
}
