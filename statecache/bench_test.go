package statecache

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

const (
	benchKeys  = 300_000
	benchBatch = 500
)

// benchValue is about what a window's group of some aggregates takes.
var benchValue = make([]byte, 100)

// benchKey is a window, a table and a group: spread over the key space.
func benchKey(dst []byte, n int) []byte {
	dst = append(dst[:0], "tumbling_window/"...)
	return kv.AppendString(dst, strconv.FormatUint(uint64(n)*0x9e3779b97f4a7c15, 36))
}

// fill commits n keys and goes on until the fold has them in the base.
func fill(b testing.TB, s *Space, n int) {
	var batch kv.Batch
	var key []byte
	for i := range n {
		key = benchKey(key, i)
		batch.Put(key, benchValue)
		if batch.Size() > 1<<20 {
			require.NoError(b, s.Commit(&batch))
			batch.Reset()
		}
	}
	require.NoError(b, s.Commit(&batch))
	batch.Reset()
	batch.Put([]byte("last"), nil)
	for s.Stats().Folding {
		require.NoError(b, s.Commit(&batch))
	}
}

// latencies reports the distribution of commits.
type latencies []time.Duration

func (l latencies) report(b *testing.B, unit string) {
	slices.Sort(l)
	if len(l) == 0 {
		return
	}
	b.ReportMetric(float64(l[len(l)/2].Microseconds()), "p50_us"+unit)
	b.ReportMetric(float64(l[len(l)*99/100].Microseconds()), "p99_us"+unit)
	b.ReportMetric(float64(l[len(l)-1].Microseconds()), "max_us"+unit)
}

// BenchmarkCommit is one commit of 500 changed records, in turns: on top of
// 300,000 keys, folding as it goes, and the same bytes appended to a file that
// was empty and never folds. The ratio of both is what state costs.
func BenchmarkCommit(b *testing.B) {
	for _, noSync := range []bool{false, true} {
		b.Run(fmt.Sprintf("keys=%d/batch=%d/sync=%v", benchKeys, benchBatch, !noSync), func(b *testing.B) {
			full := benchSpace(b, benchKeys, DefaultGenerationBytes, noSync)
			empty := benchSpace(b, 0, 1<<40, noSync)
			r := rand.New(rand.NewPCG(1, 1))
			var batch kv.Batch
			var key []byte
			var all, folding, base latencies
			var written, bytes int64
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				for range benchBatch {
					key = benchKey(key, r.IntN(benchKeys))
					batch.Put(key, benchValue)
				}
				b.StopTimer()
				base = append(base, timed(b, empty, &batch))
				before := wrote()
				b.StartTimer()
				all = append(all, timed(b, full, &batch))
				b.StopTimer()
				written += wrote() - before
				bytes += int64(batch.Size())
				if full.state.frozen != nil {
					folding = append(folding, all[len(all)-1])
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(written)/float64(bytes), "written/byte")
			b.ReportMetric(100*float64(len(folding))/float64(len(all)), "%folding")
			b.ReportMetric(float64(all.sum())/float64(base.sum()), "ratio")
			all.report(b, "")
			folding.report(b, "/folding")
			base.report(b, "/empty")
		})
	}
}

func benchSpace(b *testing.B, keys, generation int, noSync bool) *Space {
	f := open(b, filepath.Join(b.TempDir(), "state.db"), Options{NoSync: true, GenerationBytes: generation})
	s := lease(b, f, "a")
	fill(b, s, keys)
	f.db.NoSync = noSync
	require.NoError(b, f.db.Sync())
	return s
}

func timed(b *testing.B, s *Space, batch *kv.Batch) time.Duration {
	start := time.Now()
	require.NoError(b, s.Commit(batch))
	return time.Since(start)
}

func (l latencies) sum() (sum time.Duration) {
	for _, d := range l {
		sum += d
	}
	return sum
}

// wrote is the number of bytes the process has given to write calls, 0 where
// the system does not tell.
func wrote() (n int64) {
	text, err := os.ReadFile("/proc/self/io")
	if err == nil {
		_, _ = fmt.Sscanf(string(text[slices.Index(text, '\n')+1:]), "wchar: %d", &n)
	}
	return n
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "state.db")
	f := open(b, path, Options{NoSync: true})
	s := lease(b, f, "a")
	fill(b, s, benchKeys)
	var batch kv.Batch
	for i := 0; s.Stats().LogBytes < DefaultGenerationBytes; i++ {
		batch.Reset()
		for j := range benchBatch {
			batch.Put(benchKey(nil, (i*benchBatch+j)%benchKeys), benchValue)
		}
		require.NoError(b, s.Commit(&batch))
	}
	require.NoError(b, s.Close())
	require.NoError(b, f.Close())
	for b.Loop() {
		f, err := Open(path, Options{})
		require.NoError(b, err)
		s, err := f.Lease("a")
		require.NoError(b, err)
		require.NoError(b, s.Close())
		require.NoError(b, f.Close())
	}
}

// BenchmarkRead reads single keys and short ranges of a folded state.
func BenchmarkRead(b *testing.B) {
	s := benchSpace(b, benchKeys, DefaultGenerationBytes, true)
	r := rand.New(rand.NewPCG(1, 1))
	var key []byte
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			key = benchKey(key, r.IntN(benchKeys))
			v, err := s.Get(key)
			if err != nil || v == nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("miss", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			key = benchKey(key, benchKeys+r.IntN(benchKeys))
			v, err := s.Get(key)
			if err != nil || v != nil {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("scan/keys=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			stop := fmt.Errorf("stop")
			for b.Loop() {
				left := n
				key = benchKey(key, r.IntN(benchKeys))
				_ = s.Scan(key[:len(key)-6], nil, func(_, _ []byte) error {
					if left--; left == 0 {
						return stop
					}
					return nil
				})
			}
		})
	}
}
