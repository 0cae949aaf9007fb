package statecache

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// BenchmarkCommitOf commits what components write, and reports the time for each put.
//
// Groups: the open windows of 100,000 groups, whatever of them changed. Outbox: rows
// under ascending numbers, deleted two commits later. Small: 500 of 300,000 keys at
// random.
func BenchmarkCommitOf(b *testing.B) {
	for _, n := range []int{16_000, 65_000, 250_000} {
		b.Run(fmt.Sprintf("groups/puts=%d", n), func(b *testing.B) { benchLoad(b, n, groupsLoad(n)) })
	}
	b.Run("outbox/puts=4096", func(b *testing.B) { benchLoad(b, 4096, outboxLoad(4096)) })
	b.Run("small/puts=500", func(b *testing.B) { benchLoad(b, 500, smallLoad(500)) })
}

// benchLoad commits some generations first.
func benchLoad(b *testing.B, puts int, next func(*kv.Batch)) {
	s := benchSpace(b, 0, DefaultGenerationBytes, true)
	var batch kv.Batch
	for bytes := 0; bytes < 4*DefaultGenerationBytes; bytes += batch.Size() {
		batch.Reset()
		next(&batch)
		require.NoError(b, s.Commit(&batch))
	}
	var all latencies
	var used time.Duration
	before := wrote()
	bytes := 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		batch.Reset()
		next(&batch)
		bytes += batch.Size()
		b.StartTimer()
		cpu := cpuTime()
		all = append(all, timed(b, s, &batch))
		used += cpuTime() - cpu
	}
	b.StopTimer()
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N)/float64(puts), "cpu_ns/put")
	b.ReportMetric(float64(wrote()-before)/float64(bytes), "written/byte")
	all.report(b, "")
}

// groupsLoad puts n groups of the windows that are open, each at most once; a window
// closes now and then.
func groupsLoad(n int) func(*kv.Batch) {
	const groups, open = 100_000, 3
	r := rand.New(rand.NewPCG(1, 1))
	windows := r.Perm(groups * open)
	key := func(dst []byte, start int64) []byte {
		dst = append(dst[:0], "c/op/tumbling_window/g"...)
		return kv.AppendInt64(kv.AppendInt64(dst, start+300e9), start)
	}
	var k, to []byte
	sent, first := 0, int64(0)
	return func(b *kv.Batch) {
		for i := range n {
			j := i + r.IntN(len(windows)-i)
			windows[i], windows[j] = windows[j], windows[i]
			w := windows[i]
			k = key(k, (first+int64(w%open))*300e9)
			k = fmt.Appendf(k, "\x04page-%05d\x00", w/open)
			b.Put(k, make([]byte, 25))
		}
		if sent += n; sent > 2*groups*open {
			sent = 0
			k, to = key(k, first*300e9), key(to, (first+1)*300e9)
			b.Delete(k, to)
			first++
		}
	}
}

// outboxLoad puts n rows and deletes those of two commits before.
func outboxLoad(n int) func(*kv.Batch) {
	key := func(i int) []byte { return kv.AppendInt64([]byte("o/"), int64(i)) }
	next := 0
	value := make([]byte, 254)
	return func(b *kv.Batch) {
		for range n {
			b.Put(key(next), value)
			next++
		}
		if next >= 3*n {
			b.Delete(key(next-3*n), key(next-2*n))
		}
	}
}

func smallLoad(n int) func(*kv.Batch) {
	r := rand.New(rand.NewPCG(1, 1))
	var key []byte
	return func(b *kv.Batch) {
		for range n {
			key = benchKey(key, r.IntN(benchKeys))
			b.Put(key, benchValue)
		}
	}
}
