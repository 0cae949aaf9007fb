package agg

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// benchRows are rows as most pipelines have them: ids, prices, conditions.
func benchRows(c *Call, float bool) []Input {
	r := rand.New(rand.NewPCG(1, 2))
	return rowsFor(r, c, 1024, func(r *rand.Rand) Value {
		switch {
		case c.Function.Check(c, Input{Value: Int(1), By: Int(1)}) != nil:
			return Bool(r.IntN(2) == 0)
		case float:
			return Float(float64(r.IntN(100000)) / 100)
		}
		return Int(r.Int64N(1000))
	})
}

func BenchmarkAdd(b *testing.B) {
	for _, c := range calls(b) {
		for _, float := range []bool{false, true} {
			name := c.Function.Name + "/ints"
			if float {
				name = c.Function.Name + "/floats"
			}
			b.Run(name, func(b *testing.B) {
				rows := benchRows(c, float)
				acc := c.Function.New(c)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if i&(1<<15-1) == 0 {
						acc = c.Function.New(c) // the lists stay below their limits
					}
					in := rows[i&1023]
					in.Time = watermark.Time(i)
					acc.Add(in)
				}
			})
		}
	}
}

// BenchmarkMemory reports the bytes of an accumulator with ten rows.
func BenchmarkMemory(b *testing.B) {
	for _, c := range calls(b) {
		b.Run(c.Function.Name, func(b *testing.B) {
			rows := benchRows(c, true)[:10]
			const n = 2000
			var before, after runtime.MemStats
			for b.Loop() {
				accs := make([]Accumulator, n)
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := range accs {
					accs[i] = fold(c, rows)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(accs)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/accumulator")
		})
	}
}

func TestAddDoesNotAllocateOnceThereIsState(t *testing.T) {
	for _, c := range calls(t) {
		if c.limit > 0 || c.Function.Name == "reduce" {
			continue // grows
		}
		for _, float := range []bool{false, true} {
			rows := benchRows(c, float)
			acc := fold(c, rows)
			i := 0
			require.Zero(t, testing.AllocsPerRun(1000, func() {
				in := rows[i&1023]
				in.Time = watermark.Time(i) + 5000
				acc.Add(in)
				i++
			}), c.Text)
		}
	}
}

func TestSumOfIntegersDoesNotAllocateBesideItself(t *testing.T) {
	c := mustParse(t, "sum(this.v)")
	require.Equal(t, 1.0, testing.AllocsPerRun(100, func() {
		acc := c.Function.New(c)
		for i := range 100 {
			acc.Add(Input{Value: Int(int64(i) << 50)})
		}
	}))
}
