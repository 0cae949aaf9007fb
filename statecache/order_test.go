package statecache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// TestSortedPuts: keys that agree far, end early, end in zeros, come again.
func TestSortedPuts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	alphabet := []byte{0, 0, 1, 'a', 0xff}
	for range 1000 {
		prefix := bytes.Repeat([]byte{alphabet[r.IntN(5)]}, r.IntN(20))
		puts := make([]freshPut, r.IntN(40)+r.IntN(2)*r.IntN(3*fewMarks))
		spread := 1 + r.IntN(24)
		for i := range puts {
			key := bytes.Clone(prefix[:len(prefix)-r.IntN(2)*r.IntN(len(prefix)+1)])
			for range r.IntN(spread) {
				key = append(key, alphabet[r.IntN(5)])
			}
			puts[i] = freshPut{key: string(key), value: []byte{0}}
		}
		marks := sortedMarks(puts)
		require.Len(t, marks, len(puts))
		require.True(t, slices.IsSortedFunc(marks, func(a, b mark) int {
			if c := bytes.Compare([]byte(puts[a.put].key), []byte(puts[b.put].key)); c != 0 {
				return c
			}
			return int(a.put) - int(b.put)
		}))
		last := map[string]uint32{}
		for i := range puts {
			last[puts[i].key] = uint32(i)
		}
		for _, m := range marks {
			require.Equal(t, last[puts[m.put].key] != m.put, m.again)
		}
	}
}

// BenchmarkOrder orders the batches of a window operator: the groups of two windows,
// most of them more than once.
func BenchmarkOrder(b *testing.B) {
	const groups, batches = 100_000, 4
	r := rand.New(rand.NewPCG(1, 1))
	var aside [][]byte
	puts := 0
	for range batches {
		var batch kv.Batch
		for i := range groups {
			end := int64(1_700_000_000_000_000_000)
			if i%10 == 0 {
				end += int64(30 * time.Minute)
			}
			key := kv.AppendInt64(kv.AppendInt64([]byte("c/op/tumbling_window/g"), end), end-int64(30*time.Minute))
			batch.Put(fmt.Appendf(key, "\x04customer-%05d\x00", r.IntN(groups)), make([]byte, 30))
			puts++
		}
		aside = append(aside, batch.Bytes())
	}
	b.ReportAllocs()
	for b.Loop() {
		t := table{aside: aside}
		_, err := t.pin()
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(puts), "ns/put")
}
