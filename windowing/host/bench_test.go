package host

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

func BenchmarkPositions(b *testing.B) {
	for _, partitions := range []int{1, 12, 1000} {
		b.Run(fmt.Sprint("partitions=", partitions), func(b *testing.B) {
			b.ReportAllocs()
			rig := newPositionRig(Offsets)
			names := make([]string, partitions)
			for i := range names {
				names[i] = fmt.Sprint("topic/", i)
			}
			for i := range b.N {
				if i%1000 == 0 {
					rig.last.Reset()
					rig.save(&rig.last)
					rig.begin()
				}
				pos := Position{Partition: names[i/100%partitions], Offset: int64(i), Known: true, Hash: 1}
				if _, err := rig.apply(&pos, rig.now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHost is the way of a row through a host that passes it on, without
// evaluation, disk and output.
func BenchmarkHost(b *testing.B) {
	for _, size := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("batch=", size), func(b *testing.B) {
			b.ReportAllocs()
			r := newRig(b, passes, func(c *Config) { c.Store = kv.NewMemory() }).open()
			done := make(chan struct{})
			rows := (b.N + size - 1) / size * size
			var taken atomic.Int64
			go func() {
				defer close(done)
				for n := 0; n < rows; {
					d, err := r.Next(context.Background())
					if err != nil {
						return
					}
					n += len(d.Messages)
					taken.Store(int64(n))
					d.Settle(nil)
				}
			}()
			notes := make([]*note, size)
			b.ResetTimer()
			for from := 0; from < rows; from += size {
				for i := range notes {
					notes[i] = at(int64(from), "key")
				}
				require.NoError(b, r.Offer(context.Background(), events(int64(from), notes...)))
			}
			<-done
		})
	}
}
