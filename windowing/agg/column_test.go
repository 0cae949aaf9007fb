package agg

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A column of any length gives for each number what an accumulator of its own
// gives, also where its memory is used again.
func TestColumnIsAsManyAccumulators(t *testing.T) {
	r := random(t)
	for _, c := range calls(t) {
		value := mixed
		if c.Function.Name == "reduce" {
			value = func(r *rand.Rand) Value { return Int(r.Int64N(100)) }
		}
		t.Run(c.Text, func(t *testing.T) {
			column := c.Function.NewColumn(c)
			for _, n := range []int{0, 1, 3, mostCells - 1, 2*mostCells + 1, 7, mostCells, 3 * mostCells} {
				column.Clear()
				single := make([]Accumulator, n)
				for i := range single {
					column.Extend()
					single[i] = c.Function.New(c)
				}
				require.Panics(t, func() { column.At(uint32(n)) })
				for i, in := range rowsFor(r, c, min(3*n, 1000), value) {
					in.Arrival = int64(i)
					at := r.IntN(n)
					column.At(uint32(at)).Add(in)
					single[at].Add(in)
				}
				for range n / 8 {
					from, to := r.IntN(n), r.IntN(n)
					if from == to {
						continue
					}
					column.At(uint32(to)).Merge(column.At(uint32(from)))
					single[to].Merge(single[from])
					column.Set(uint32(from), c.Function.New(c))
					single[from] = c.Function.New(c)
				}
				for i := range single {
					require.Equal(t, show(single[i]), show(column.At(uint32(i))), "%d of %d", i, n)
				}
			}
		})
	}
}

// A piece of large accumulators has few of them.
func TestColumnOfLargeAccumulatorsTakesSmallPieces(t *testing.T) {
	require.Equal(t, 8, 1<<newColumn(nil, func(*Call) largeCell { return largeCell{} }).shift)
	require.Equal(t, mostCells, 1<<newColumn(nil, func(*Call) sum { return sum{} }).shift)
}

// largeCell is an accumulator of 3 KiB.
type largeCell struct {
	sum
	_ [3 << 10]byte
}

// BenchmarkColumn reports the bytes that a group takes in a column.
func BenchmarkColumn(b *testing.B) {
	for _, c := range calls(b) {
		b.Run(c.Function.Name, func(b *testing.B) {
			rows := benchRows(c, true)[:10]
			const n = 20_000
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				column := c.Function.NewColumn(c)
				for range n {
					column.Extend()
				}
				for i := range n * len(rows) {
					column.At(uint32(i % n)).Add(rows[i/n])
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(column)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/group")
		})
	}
}
