package statecache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// TestLongKeys is case 039: keys over bbolt's limit that differ in the last
// letter, in the log, in the base and after a restart.
func TestLongKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	x := strings.Repeat("x", 40000)
	keys := []string{"small", x[:longKey-1], x[:longKey], x[:longKey+1], x, x + "a", x + "b", x + "c", "y"}
	for round := range 3 {
		f, err := Open(path, quick)
		require.NoError(t, err)
		s, err := f.Lease("a")
		require.NoError(t, err)
		if round == 0 {
			for _, k := range keys {
				put(t, s, k, "value of "+k[max(0, len(k)-5):])
			}
		}
		requireKeys(t, keys, scanned(t, s, "", ""))
		requireKeys(t, keys[5:7], scanned(t, s, x+"a", x+"c"))
		requireKeys(t, keys[2:6], scanned(t, s, x[:longKey], x+"b"))
		for _, k := range keys {
			v, err := s.Get([]byte(k))
			require.NoError(t, err)
			require.Equal(t, "value of "+k[max(0, len(k)-5):], string(v))
		}
		for _, k := range []string{x + "d", x[:longKey+2], x[:longKey-2]} {
			v, err := s.Get([]byte(k))
			require.NoError(t, err)
			require.Nil(t, v)
		}
		settle(t, s)
		require.NoError(t, s.Close())
		require.NoError(t, f.Close())
	}
	s := lease(t, open(t, path, quick), "a")
	var b kv.Batch
	b.Delete([]byte(x+"a"), []byte(x+"c"))
	b.Delete([]byte(x), kv.After([]byte(x)))
	require.NoError(t, s.Commit(&b))
	left := []string{"small", x[:longKey-1], x[:longKey], x[:longKey+1], x + "c", "y"}
	requireKeys(t, left, scanned(t, s, "", ""))
	settle(t, s)
	requireKeys(t, left, scanned(t, s, "", ""))
}

// requireKeys compares lists of keys that may be long.
func requireKeys(t *testing.T, want, got []string) {
	t.Helper()
	brief := func(keys []string) (out []string) {
		for _, k := range keys {
			out = append(out, fmt.Sprintf("%d %s", len(k), k[max(0, len(k)-5):]))
		}
		return out
	}
	require.Equal(t, brief(want), brief(got))
}

func scanned(t *testing.T, s *Space, from, to string) (keys []string) {
	t.Helper()
	require.NoError(t, s.Scan([]byte(from), []byte(to), func(k, _ []byte) error {
		keys = append(keys, string(k))
		return nil
	}))
	return keys
}

// settle commits until all that is there now is folded into the base, and
// leaves no trace of its own.
func settle(t testing.TB, s *Space) {
	t.Helper()
	var b kv.Batch
	for want, i := s.state.active.id+1, 0; s.state.active.id < want || s.state.frozen != nil; i++ {
		require.Less(t, i, 100_000, "the fold ends")
		b.Reset()
		b.Put([]byte("settling"), make([]byte, 200))
		require.NoError(t, s.Commit(&b))
	}
	b.Reset()
	b.Delete([]byte("settling"), []byte("settling\x00"))
	require.NoError(t, s.Commit(&b))
}

// baseKeys counts the records of the base.
func baseKeys(t *testing.T, s *Space) (n int) {
	t.Helper()
	require.NoError(t, s.viewBase("counting", func(b *bolt.Bucket) error {
		n = b.Stats().KeyN
		return nil
	}))
	return n
}

// TestDeletedStateLeavesTheBase: a closed window is a range delete; its keys
// go in time, in small portions, and their pages are used again.
func TestDeletedStateLeavesTheBase(t *testing.T) {
	s := newSpace(t, Options{NoSync: true, GenerationBytes: 50_000})
	const groups = 5000
	f := s.handle
	var size int64
	for window := range 12 {
		var b kv.Batch
		for g := range groups {
			b.Put(fmt.Appendf(nil, "w%03d/%05d", window, g), make([]byte, 80))
			if b.Len() == 100 {
				require.NoError(t, s.Commit(&b))
				b.Reset()
			}
		}
		b.Delete(fmt.Appendf(nil, "w%03d/", window), fmt.Appendf(nil, "w%03d0", window))
		require.NoError(t, s.Commit(&b))
		require.Empty(t, scanned(t, s, "", ""), "gone at once")
		if window == 5 {
			info, err := f.file.Stat()
			require.NoError(t, err)
			size = info.Size()
		}
	}
	settle(t, s)
	require.LessOrEqual(t, baseKeys(t, s), 1)
	info, err := f.file.Stat()
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), 2*size, "the file does not grow with what has passed")
	verify(t, f)
}

// TestFoldIsBounded counts the pages that each commit writes while a large
// state is overwritten at random and while most of it is deleted at once.
func TestFoldIsBounded(t *testing.T) {
	s := newSpace(t, Options{NoSync: true, GenerationBytes: 200_000})
	const keys = 30_000
	r := rand.New(rand.NewPCG(1, 1))
	var b kv.Batch
	most := func(commits int) (most int64) {
		for range commits {
			b.Reset()
			for range 20 {
				b.Put(fmt.Appendf(nil, "k%05d", r.IntN(keys)), make([]byte, 100))
			}
			before := s.db.Stats()
			require.NoError(t, s.Commit(&b))
			after := s.db.Stats()
			most = max(most, after.TxStats.GetPageCount()-before.TxStats.GetPageCount())
		}
		return most
	}
	for i := 0; i < keys; i += 500 {
		b.Reset()
		for j := range 500 {
			b.Put(fmt.Appendf(nil, "k%05d", i+j), make([]byte, 100))
		}
		require.NoError(t, s.Commit(&b))
	}
	settle(t, s)
	require.Greater(t, baseKeys(t, s), keys*9/10)
	updates := most(1000)
	b.Reset()
	b.Delete([]byte("k"), []byte("k25"))
	require.NoError(t, s.Commit(&b))
	deletes := most(1000)
	t.Logf("at most %d pages a commit under updates, %d while 25,000 keys go", updates, deletes)
	require.Less(t, updates, int64(2*foldPages))
	require.Less(t, deletes, int64(2*foldPages))
	settle(t, s)
	require.Less(t, baseKeys(t, s), keys*6/10)
}

func TestOverlappingCommitsAreRefused(t *testing.T) {
	s := newSpace(t, quick)
	var b kv.Batch
	b.Put([]byte("l"), nil)
	s.writing.Store(true)
	require.ErrorIs(t, s.Commit(&b), ErrBusy)
	s.writing.Store(false)
	require.NoError(t, s.Commit(&b))
}

// TestReadsInsideAScan commits and reads while a scan is under way, which goes on
// over what was there.
func TestReadsInsideAScan(t *testing.T) {
	s := newSpace(t, quick)
	put(t, s, "a", "1", "b", "1", "d", "1")
	var seen []string
	require.NoError(t, s.Scan(nil, nil, func(k, _ []byte) error {
		seen = append(seen, string(k))
		put(t, s, "c", string(k), "d", string(k))
		for _, key := range []string{"c", "d"} {
			v, err := s.Get([]byte(key))
			require.NoError(t, err)
			require.Equal(t, string(k), string(v))
		}
		require.Contains(t, scanned(t, s, "c", "d"), "c")
		return nil
	}))
	require.Equal(t, []string{"a", "b", "d"}, seen)
}

// TestReadsDuringCommits reads keys that no commit touches, from the log, from
// generations on their way into the base and from there, while another goroutine
// commits.
func TestReadsDuringCommits(t *testing.T) {
	const seed, rounds = 20261130, 300
	t.Log("seed", seed)
	for _, bound := range []bool{false, true} {
		s := lease(t, open(t, filepath.Join(t.TempDir(), "state.db"), Options{GenerationBytes: 4000, NoSync: true}), "s")
		if bound {
			s.Bound(1)
		}
		settled := make(chan int, 20) // the commits that are done; the reader is not far behind
		go func() {
			defer close(settled)
			r := rand.New(rand.NewPCG(seed, 1))
			for i := range rounds {
				var b kv.Batch
				for j := range 20 {
					b.Put(fmt.Appendf(nil, "k%03d/%02d", i, j), fmt.Appendf(nil, "v%d", i))
				}
				if from := i - 50; from >= 0 {
					b.Delete(fmt.Appendf(nil, "k%03d", from), fmt.Appendf(nil, "k%03d/%02d", from, 1+r.IntN(20)))
				}
				if err := s.Commit(&b); err != nil {
					t.Error(err)
				}
				settled <- i
			}
		}()
		r := rand.New(rand.NewPCG(seed, 2))
		for last := range settled {
			i := last - r.IntN(min(last+1, 10))
			v, err := s.Get(fmt.Appendf(nil, "k%03d/%02d", i, r.IntN(20)))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("v%d", i), string(v))
			n := 0
			require.NoError(t, s.Scan(fmt.Appendf(nil, "k%03d", i), fmt.Appendf(nil, "k%03d", i+1), func(_, v []byte) error {
				n++
				require.Equal(t, fmt.Sprintf("v%d", i), string(v))
				return nil
			}))
			require.Equal(t, 20, n)
		}
	}
}

func TestScanStopsAtAnError(t *testing.T) {
	s := newSpace(t, quick)
	put(t, s, "a", "1", "b", "2")
	stop := errors.New("stop")
	n := 0
	require.ErrorIs(t, s.Scan(nil, nil, func(_, _ []byte) error { n++; return stop }), stop)
	require.Equal(t, 1, n)
	require.Empty(t, scanned(t, s, "b", "a"))
	require.Empty(t, scanned(t, s, "a", "a"))
}

func TestEmptyBatchWritesNothing(t *testing.T) {
	s := newSpace(t, quick)
	require.NoError(t, s.Commit(&kv.Batch{}))
	require.Zero(t, s.state.next)
}

// TestSpacesOfOneFileConcurrently commits to several Spaces and a Cache at
// once; a reader takes turns with each committer.
func TestSpacesOfOneFileConcurrently(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "state.db"), Options{GenerationBytes: 5000})
	var wg sync.WaitGroup
	for w := range 6 {
		s := lease(t, f, fmt.Sprint("space", w))
		turn := make(chan int)
		wg.Go(func() {
			defer close(turn)
			for i := range 60 {
				var b kv.Batch
				for j := range 20 {
					b.Put(fmt.Appendf(nil, "%d/%d", i%7, j), fmt.Appendf(nil, "%d", i))
				}
				if err := s.Commit(&b); err != nil {
					t.Error(err)
				}
				turn <- i
				<-turn
			}
		})
		wg.Go(func() {
			for i := range turn {
				n := 0
				err := s.Scan(nil, nil, func(_, _ []byte) error { n++; return nil })
				if err != nil || n != 20*min(i+1, 7) {
					t.Errorf("%d keys after commit %d, %v", n, i, err)
				}
				turn <- i
			}
		})
	}
	c := newCache(t, f, "cache")
	wg.Go(func() {
		for i := range 100 {
			if err := c.Set(time.Unix(int64(i), 0), "k", nil, time.Second); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	verify(t, f.handle)
}

// TestOneFailsAlone: of writes that share a transaction, the one that cannot
// be applied fails and the others are there.
func TestOneFailsAlone(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "state.db"), Options{NoSync: true})
	mine := errors.New("mine")
	applied := [3]int{}
	group := make([]*write, 3)
	for i := range group {
		group[i] = &write{apply: func(tx *bolt.Tx) error {
			applied[i]++
			if i == 1 {
				return mine
			}
			b, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return b.Put([]byte{byte(i)}, nil)
		}}
	}
	f.run(place{what: "testing"}, group)
	require.NoError(t, group[0].err)
	require.ErrorIs(t, group[1].err, mine)
	require.ErrorContains(t, group[1].err, f.path)
	require.NoError(t, group[2].err)
	require.Equal(t, [3]int{2, 2, 1}, applied)
	require.NoError(t, f.view(place{what: "testing"}, func(tx *bolt.Tx) error {
		require.Equal(t, 2, tx.Bucket([]byte("b")).Stats().KeyN)
		return nil
	}))
}

// TestOpeningReadsTheLogOnly: what is folded stays on disk.
func TestOpeningReadsTheLogOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	f := open(t, path, Options{NoSync: true, GenerationBytes: 100_000})
	s, err := f.Lease("a")
	require.NoError(t, err)
	for i := range 200 {
		put(t, s, fmt.Sprint("k", i), strings.Repeat("v", 10_000))
	}
	require.NoError(t, s.Close())
	s = lease(t, f, "a")
	require.Less(t, s.Stats().LogBytes, 300_000)
	require.Len(t, contents(t, s), 200)
}
