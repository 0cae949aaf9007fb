package windowing

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeyTableAgainstMap: numbers are given in the order of arrival and kept.
func TestKeyTableAgainstMap(t *testing.T) {
	seed := newSeed(t)
	for _, size := range []int{1, fewKeys, fewKeys + 1, 16, 17, 1000, 5000} {
		r := rand.New(rand.NewPCG(seed, uint64(size)))
		var table keyTable
		model := map[string]uint32{}
		key := make([]byte, 0, 64)
		for range 4 * size {
			key = append(key[:0], fmt.Sprintf("%d", r.IntN(size))...)
			if r.IntN(size) == 0 {
				key = key[:0]
			}
			number, added := table.place(key)
			want, known := model[string(key)]
			require.Equal(t, !known, added)
			if added {
				want = uint32(len(model))
				model[string(key)] = want
			}
			require.Equal(t, want, number)
		}
		require.Equal(t, len(model), table.count())
		for k, number := range model {
			require.Equal(t, k, string(table.key(number)))
		}
	}
}

// TestKeyTableRank: groups come in the order of the bytes of their keys.
func TestKeyTableRank(t *testing.T) {
	seed := newSeed(t)
	for i := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, i))
		var table keyTable
		prefix := bytes.Repeat([]byte{byte(r.IntN(2))}, r.IntN(12))
		for range r.IntN(50) {
			key := bytes.Clone(prefix)
			for range r.IntN(12) {
				key = append(key, byte(r.IntN(3)*127))
			}
			table.place(key)
		}
		var got [][]byte
		for _, g := range table.rank(nil) {
			got = append(got, table.key(g.number))
		}
		require.Len(t, got, table.count())
		require.True(t, slices.IsSortedFunc(got, bytes.Compare), "%q", got)
	}
	require.Empty(t, new(keyTable).rank(nil))
}

func BenchmarkKeyTable(b *testing.B) {
	for _, keys := range []int{1, fewKeys, 1000, 100_000} {
		rows := benchRows(keys, keys)
		b.Run(fmt.Sprintf("keys=%d/known", keys), func(b *testing.B) {
			var table keyTable
			for _, row := range rows {
				table.place(row.Key)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				table.place(rows[i%keys].Key)
			}
		})
		b.Run(fmt.Sprintf("keys=%d/new", keys), func(b *testing.B) {
			var table keyTable
			b.ReportAllocs()
			for i := range b.N {
				if i%keys == 0 {
					table = keyTable{}
				}
				table.place(rows[i%keys].Key)
			}
		})
		b.Run(fmt.Sprintf("keys=%d/rank", keys), func(b *testing.B) {
			var table keyTable
			for _, row := range rows {
				table.place(row.Key)
			}
			var order []ranked
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N/keys + 1 { // the time is per group
				order = table.rank(order[:0])
			}
		})
	}
}
