package watermark

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkObserve is a batch of 1000 rows and its Advance, over partitions that come in
// runs of one row, of ten, or all in one.
func BenchmarkObserve(b *testing.B) {
	for _, c := range []struct{ partitions, run int }{{1, 1000}, {16, 1}, {16, 10}, {1000, 1}, {100_000, 1}} {
		b.Run(fmt.Sprintf("partitions=%d/run=%d", c.partitions, c.run), func(b *testing.B) {
			b.ReportAllocs()
			const rows = 1000
			names := partitionNames(c.partitions)
			order := make([]string, 100*rows)
			for i := range order {
				order[i] = names[i/c.run%len(names)]
			}
			f := NewFrontier(Config{Sources: []SourceConfig{{IdleTimeout: time.Minute}}}, Clock{})
			at, first := Time(0), 0
			for b.Loop() {
				for _, name := range order[first : first+rows] {
					at++
					f.Observe(0, name, at)
				}
				f.Advance(Clock{Mono: time.Duration(at)})
				first = (first + rows) % len(order)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}

// BenchmarkAdvance is the cost per batch of one row where the number of partitions is
// large and few of them speak.
func BenchmarkAdvance(b *testing.B) {
	for _, policy := range []Policy{PolicyMin, PolicyMax} {
		for _, keys := range []int{1, 1000, 100_000} {
			b.Run(fmt.Sprintf("policy=%s/partitions=%d", policy, keys), func(b *testing.B) {
				b.ReportAllocs()
				names := partitionNames(keys)
				f := NewFrontier(Config{Sources: []SourceConfig{{IdleTimeout: time.Minute}}, Policy: policy}, Clock{})
				for i, name := range names {
					f.Observe(0, name, Time(i))
				}
				f.Advance(Clock{})
				at, row := Time(keys), 0
				for b.Loop() {
					at++
					row++
					f.Observe(0, names[row*7919%keys], at)
					f.Advance(Clock{Mono: time.Duration(row) * time.Millisecond})
				}
			})
		}
	}
}

// BenchmarkAppendState and BenchmarkWriteChanges are the costs of a commit after a batch
// of ten partitions.
func BenchmarkAppendState(b *testing.B) {
	for _, keys := range []int{16, 1000} {
		b.Run(fmt.Sprintf("partitions=%d", keys), func(b *testing.B) {
			b.ReportAllocs()
			f := NewFrontier(Config{Sources: []SourceConfig{{}}}, Clock{})
			for i, name := range partitionNames(keys) {
				f.Observe(0, name, Time(i))
			}
			f.Advance(Clock{})
			var buf []byte
			for b.Loop() {
				buf = f.AppendState(buf[:0])
			}
			b.ReportMetric(float64(len(buf)), "bytes")
		})
	}
}

func BenchmarkWriteChanges(b *testing.B) {
	b.ReportAllocs()
	names := partitionNames(1000)
	f := NewFrontier(Config{Sources: []SourceConfig{{}}}, Clock{})
	at := Time(0)
	for b.Loop() {
		for i := range 10 {
			at++
			f.Observe(0, names[(int(at)*31+i)%len(names)], at)
		}
		f.Advance(Clock{})
		f.WriteChanges(func(key, value []byte) {})
	}
}

func partitionNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("orders/%d", i)
	}
	return names
}
