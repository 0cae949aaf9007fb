package statecache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// overlapping makes batches in which the active generation takes up again, deletes or
// deletes by range what is being folded, and leaves some of it alone.
func (m *machine) overlapping(b *kv.Batch, step int) map[string]string {
	next := maps.Clone(m.model)
	key := func(i int) string { return fmt.Sprintf("k%04d", i) }
	for range 2 + m.r.IntN(6) {
		i := m.r.IntN(m.keys)
		switch k := key(i); m.r.IntN(8) {
		case 0:
			b.Delete([]byte(k), kv.After([]byte(k)))
			delete(next, k)
		case 1:
			to := key(i + 1 + m.r.IntN(m.keys/6))
			b.Delete([]byte(k), []byte(to))
			maps.DeleteFunc(next, func(key, _ string) bool { return key >= k && key < to })
			if m.r.IntN(2) == 0 { // in the range just deleted
				b.Put([]byte(k), []byte("again"))
				next[k] = "again"
			}
		default:
			v := fmt.Sprintf("%d of %s %s", step, k, strings.Repeat("v", m.r.IntN(20)))
			b.Put([]byte(k), []byte(v))
			next[k] = v
		}
	}
	return next
}

// TestFoldUnderOverwriting folds tiny generations over many commits, each followed by
// a kill, while the next ones overwrite and delete the same few keys.
func TestFoldUnderOverwriting(t *testing.T) {
	for _, keys := range []int{12, 60, 400} {
		t.Run(fmt.Sprint(keys), func(t *testing.T) {
			m := newMachine(t, uint64(time.Now().UnixNano()), keys)
			dir := t.TempDir()
			opts := Options{NoSync: true, GenerationBytes: 3000 + 20*keys}
			f := open(t, filepath.Join(dir, "state.db"), opts)
			s := lease(t, f, "a")
			var b kv.Batch
			partly := 0
			for step := range 500 {
				b.Reset()
				m.model = m.overlapping(&b, step)
				require.NoError(t, s.Commit(&b))
				require.Equal(t, m.model, contents(t, s))
				if s.state.pos != "" {
					partly++
				}
				if step%3 == 0 || s.state.pos != "" {
					m.goOnInCopy(s, filepath.Join(dir, fmt.Sprintf("copy%d.db", step)), opts, m.r.IntN(30), (*machine).overlapping)
				}
			}
			if keys > 12 { // else all is overwritten before
				require.Greater(t, partly, 10)
			}
			settle(t, s)
			settle(t, s)
			require.Equal(t, len(m.model), baseKeys(t, s), "the base has what there is")
			verify(t, f.handle)
		})
	}
}

// TestFailedCommitsUnderOverwriting makes commits fail with and without their changes
// in the file, and goes on with the same batch or another one of another size.
func TestFailedCommitsUnderOverwriting(t *testing.T) {
	m := newMachine(t, uint64(time.Now().UnixNano()), 60)
	path := filepath.Join(t.TempDir(), "state.db")
	opts := Options{NoSync: true, GenerationBytes: 3000}
	f := open(t, path, opts)
	s := lease(t, f, "a")
	for step := range 800 {
		var b kv.Batch
		next := m.overlapping(&b, step)
		for range m.r.IntN(3) {
			f.fail = failing(m.r.IntN(2) == 0)
			require.ErrorIs(t, s.Commit(&b), errInjected)
			f.fail = failure{}
			require.Equal(t, m.model, contents(t, s), "nothing has changed")
			if m.r.IntN(2) == 0 {
				b.Reset()
				next = m.overlapping(&b, step)
				if m.r.IntN(4) == 0 { // enough for the next generation
					b.Put([]byte("large"), make([]byte, 2000))
					next["large"] = string(make([]byte, 2000))
				}
			}
		}
		require.NoError(t, s.Commit(&b))
		m.model = next
		require.Equal(t, m.model, contents(t, s))
		if step%10 == 0 {
			m.goOnInCopy(s, path+fmt.Sprint(step), opts, m.r.IntN(30), (*machine).overlapping)
		}
	}
	settle(t, s)
	settle(t, s)
	require.Equal(t, len(m.model), baseKeys(t, s))
	verify(t, f.handle)
}

// TestReadsOfWhatCommitsOverwrite reads keys while each commit writes all of them: no
// read is older than the last commit that had returned, in no layer.
func TestReadsOfWhatCommitsOverwrite(t *testing.T) {
	const seed, rounds, keys = 20261131, 400, 40
	t.Log("seed", seed)
	for _, bound := range []bool{false, true} {
		s := lease(t, open(t, filepath.Join(t.TempDir(), "state.db"), Options{GenerationBytes: 6000, NoSync: true}), "s")
		if bound {
			s.Bound(1)
		}
		settled := make(chan int, 20)
		go func() {
			defer close(settled)
			r := rand.New(rand.NewPCG(seed, 1))
			for i := range rounds {
				var b kv.Batch
				for j := range keys {
					if i%7 == 0 || r.IntN(3) > 0 || j == 0 {
						b.Put(fmt.Appendf(nil, "k%02d", j), fmt.Appendf(nil, "%04d", i))
					}
				}
				b.Put(fmt.Appendf(nil, "once%04d", i), []byte("x"))
				if err := s.Commit(&b); err != nil {
					t.Error(err)
				}
				settled <- i
			}
		}()
		r := rand.New(rand.NewPCG(seed, 2))
		for last := range settled {
			v, err := s.Get([]byte("k00"))
			require.NoError(t, err)
			require.GreaterOrEqual(t, string(v), fmt.Sprintf("%04d", last))
			floor := fmt.Sprintf("%04d", last-last%7)
			v, err = s.Get(fmt.Appendf(nil, "k%02d", r.IntN(keys)))
			require.NoError(t, err)
			require.GreaterOrEqual(t, string(v), floor)
			n := 0
			require.NoError(t, s.Scan([]byte("k"), []byte("l"), func(k, v []byte) error {
				n++
				require.GreaterOrEqual(t, string(v), floor, "%s", k)
				return nil
			}))
			require.Equal(t, keys, n)
			v, err = s.Get(fmt.Appendf(nil, "once%04d", r.IntN(last+1)))
			require.NoError(t, err)
			require.Equal(t, "x", string(v))
		}
	}
}

// TestManySmallCommits writes one key at a time, through several generations, with
// reads between.
func TestManySmallCommits(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 4))
	s := newSpace(t, Options{NoSync: true, GenerationBytes: 10_000})
	model := map[string]string{}
	var b kv.Batch
	for i := range 6000 {
		b.Reset()
		k := fmt.Sprintf("k%04d", r.IntN(2000))
		if r.IntN(4) == 0 {
			b.Delete([]byte(k), kv.After([]byte(k)))
			delete(model, k)
		} else {
			model[k] = fmt.Sprint(i)
			b.Put([]byte(k), []byte(model[k]))
		}
		require.NoError(t, s.Commit(&b))
		if i%500 == 0 {
			require.Equal(t, model, contents(t, s))
		}
		require.Less(t, s.Stats().LogBytes, 3*10_000)
	}
	require.Equal(t, model, contents(t, s))
	require.Greater(t, s.state.active.id, uint64(5))
	verify(t, s.handle)
}

// TestFailedCommitsThatFoldAGeneration: of two commits that fail one after the other
// and are in the file, the first freezes a generation and the second folds it.
func TestFailedCommitsThatFoldAGeneration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	opts := Options{NoSync: true, GenerationBytes: 3000}
	f := open(t, path, opts)
	s := lease(t, f, "a")
	s.Bound(1)
	model := map[string]string{}
	for i := 0; !s.state.due(100, s.generation); i++ {
		k := fmt.Sprintf("k%03d", i)
		model[k] = "value"
		put(t, s, k, "value")
	}
	before := s.state
	for range 2 {
		f.fail = failing(true)
		var b kv.Batch
		b.Put([]byte("large"), make([]byte, 10_000))
		require.ErrorIs(t, s.Commit(&b), errInjected)
	}
	f.fail = failure{}
	require.Equal(t, before, s.state)
	require.Equal(t, len(model), baseKeys(t, s), "folded")
	put(t, s, "k000", "again")
	model["k000"] = "again"
	require.Equal(t, model, contents(t, s))
	m := newMachine(t, 1, 60)
	m.model = model
	m.goOnInCopy(s, path+".copy", opts, m.r.IntN(30), (*machine).overlapping)
}

// TestScanWhileARangeIsReplaced: a commit deletes a range and puts a key in it again,
// later ones overwrite that key while the deletion is folded. A scan that began before
// sees the key in one of its states; it was never gone.
func TestScanWhileARangeIsReplaced(t *testing.T) {
	s := newSpace(t, Options{NoSync: true, GenerationBytes: 3000})
	for i := range 100 {
		put(t, s, fmt.Sprintf("k%03d", i), "old")
	}
	settle(t, s)
	var seen []string
	started := false
	require.NoError(t, s.Scan(nil, nil, func(k, _ []byte) error {
		seen = append(seen, string(k))
		if started {
			return nil
		}
		started = true
		done := make(chan struct{})
		go func() {
			defer close(done)
			var b kv.Batch
			b.Delete([]byte("k"), []byte("l"))
			b.Put([]byte("k050"), []byte("new"))
			if err := s.Commit(&b); err != nil {
				t.Error(err)
			}
			b.Reset()
			b.Put([]byte("k050"), make([]byte, 500))
			for id := s.state.active.id; s.state.active.id < id+2; {
				if err := s.Commit(&b); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		<-done
		return nil
	}))
	require.Contains(t, seen, "k050")
}

// TestLargeGenerationIsSiftedInPortions: one that grew far past its size must not be
// put in order by a single commit.
func TestLargeGenerationIsSiftedInPortions(t *testing.T) {
	s := newSpace(t, Options{NoSync: true, GenerationBytes: 20_000})
	var b kv.Batch
	for i := range 100_000 {
		b.Put(fmt.Appendf(nil, "k%06d", i), []byte("a value"))
	}
	require.NoError(t, s.Commit(&b))
	put(t, s, "k", "v")
	large := s.state.frozen
	require.Equal(t, 100_000, len(large.index.entries))
	for steps, sifted := 0, 0; sifted < 100_000; steps++ {
		put(t, s, "k", "v")
		require.Less(t, large.rest.sifted-sifted, 15_000)
		sifted = large.rest.sifted
		require.Less(t, steps, 50)
	}
}
