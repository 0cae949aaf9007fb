package statecache

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// machine drives a Space and a plain map with the same random operations.
type machine struct {
	t     *testing.T
	r     *rand.Rand
	model map[string]string
	keys  int // how many different ones
}

func newMachine(t *testing.T, seed uint64, keys int) *machine {
	t.Logf("seed %d", seed)
	return &machine{t: t, r: rand.New(rand.NewPCG(seed, 1)), model: map[string]string{}, keys: keys}
}

// key picks one of the keys; some are longer than bbolt's limit and differ in
// the last letters only, one is empty.
func (m *machine) key() string {
	n := m.r.IntN(m.keys)
	switch {
	case n == 0:
		return ""
	case n%40 == 1:
		return "k" + strings.Repeat("x", 40000) + fmt.Sprintf("%03d", n)
	case n%40 == 2:
		return strings.Repeat("x", longKey-1+n%3) + fmt.Sprintf("%03d", n)
	default:
		return fmt.Sprintf("k%05d", n)
	}
}

// batch fills a batch and applies it to a copy of the model.
func (m *machine) batch(b *kv.Batch) map[string]string {
	next := maps.Clone(m.model)
	for range 1 + m.r.IntN(12) {
		switch k := m.key(); m.r.IntN(20) {
		case 0, 1, 2:
			b.Delete([]byte(k), kv.After([]byte(k)))
			delete(next, k)
		case 3:
			to := m.key()
			b.Delete([]byte(k), []byte(to))
			maps.DeleteFunc(next, func(key, _ string) bool { return key >= k && (to == "" || key < to) })
		default:
			v := strings.Repeat(string(rune('a'+m.r.IntN(26))), m.r.IntN(60))
			if m.r.IntN(50) == 0 {
				v = strings.Repeat(v, 300)
			}
			b.Put([]byte(k), []byte(v))
			next[k] = v
		}
	}
	if b.Len() == 0 {
		b.Put([]byte("one"), nil)
		next["one"] = ""
	}
	return next
}

// compare checks all, a range and single keys.
func (m *machine) compare(s *Space) {
	require.True(m.t, maps.Equal(m.model, contents(m.t, s)), "contents")
	from, to := m.key(), m.key()
	var want, got []string
	for _, k := range slices.Sorted(maps.Keys(m.model)) {
		if k >= from && (to == "" || k < to) {
			want = append(want, k+"="+m.model[k])
		}
	}
	require.NoError(m.t, s.Scan([]byte(from), []byte(to), func(k, v []byte) error {
		got = append(got, string(k)+"="+string(v))
		return nil
	}))
	require.True(m.t, slices.Equal(want, got), "range of %.9q to %.9q", from, to)
	for range 10 {
		k := m.key()
		v, err := s.Get([]byte(k))
		require.NoError(m.t, err)
		want, there := m.model[k]
		require.Equal(m.t, there, v != nil, "%.9q", k)
		require.Equal(m.t, want, string(v))
	}
}

// TestAgainstModel runs random batches with restarts at random.
func TestAgainstModel(t *testing.T) {
	for _, keys := range []int{30, 600, 3000} {
		t.Run(fmt.Sprint(keys), func(t *testing.T) {
			m := newMachine(t, uint64(time.Now().UnixNano()), keys)
			path := filepath.Join(t.TempDir(), "state.db")
			f, err := Open(path, quick)
			require.NoError(t, err)
			s, err := f.Lease("a")
			require.NoError(t, err)
			var b kv.Batch
			folds := 0
			for step := range 800 {
				b.Reset()
				m.model = m.batch(&b)
				require.NoError(t, s.Commit(&b))
				if s.Stats().Folding {
					folds++
				}
				if step%20 == 0 {
					m.compare(s)
				}
				if m.r.IntN(50) == 0 {
					require.NoError(t, s.Close())
					require.NoError(t, f.Close())
					f, err = Open(path, quick)
					require.NoError(t, err)
					s, err = f.Lease("a")
					require.NoError(t, err)
					m.compare(s)
				}
			}
			require.Greater(t, folds, 5)
			verify(t, f.handle)
			require.NoError(t, s.Close())
			require.NoError(t, f.Close())
		})
	}
}

// patient folds over many commits.
var patient = Options{NoSync: true, GenerationBytes: 30_000}

// TestKilledAtEveryCommit copies the file between commits, as a kill would
// leave it, through several folds, and opens the copy: it is the state after
// the last commit, and goes on to work.
func TestKilledAtEveryCommit(t *testing.T) {
	for name, opts := range map[string]Options{"quick": quick, "patient": patient} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, uint64(time.Now().UnixNano()), 300)
			dir := t.TempDir()
			f := open(t, filepath.Join(dir, "state.db"), opts)
			s := lease(t, f, "a")
			var b kv.Batch
			for step := range 100 {
				b.Reset()
				m.model = m.batch(&b)
				require.NoError(t, s.Commit(&b))
				m.goOnInCopy(s, filepath.Join(dir, fmt.Sprintf("copy%d.db", step)), opts, 5, anything)
			}
		})
	}
}

// anything is a batch that does not depend on how many there were.
func anything(m *machine, b *kv.Batch, _ int) map[string]string { return m.batch(b) }

// goOnInCopy opens a copy of the file, compares, and makes some commits to it, each of
// what next fills in; that gives the model as it is after the commit.
func (m *machine) goOnInCopy(s *Space, path string, opts Options, commits int, next func(m *machine, b *kv.Batch, i int) map[string]string) {
	t := m.t
	copyFile(t, s.path, path)
	after := *m
	f, err := Open(path, opts)
	require.NoError(t, err)
	c, err := f.Lease("a")
	require.NoError(t, err)
	after.compare(c)
	var b kv.Batch
	for i := range commits {
		b.Reset()
		after.model = next(&after, &b, i)
		require.NoError(t, c.Commit(&b))
	}
	after.compare(c)
	require.NoError(t, c.Close())
	require.NoError(t, f.Close())
	require.NoError(t, os.Remove(path))
}

// TestKilledWhileARangeGoes does the same while a deleted range, larger than
// what one commit may take out of the base, is on its way.
func TestKilledWhileARangeGoes(t *testing.T) {
	const keys = 24 * foldDeletes // so that several commits are needed, however much each may do
	const kept = keys - 10
	dir := t.TempDir()
	opts := Options{NoSync: true, GenerationBytes: 100_000}
	f := open(t, filepath.Join(dir, "state.db"), opts)
	s := lease(t, f, "a")
	m := newMachine(t, uint64(time.Now().UnixNano()), 30_000)
	var b kv.Batch
	for i := range keys {
		b.Put(fmt.Appendf(nil, "w%05d", i), []byte("value"))
	}
	require.NoError(t, s.Commit(&b))
	settle(t, s)
	require.GreaterOrEqual(t, baseKeys(t, s), keys)
	b.Reset()
	b.Delete([]byte("settling"), fmt.Appendf(nil, "w%05d", kept))
	require.NoError(t, s.Commit(&b))
	for i := kept; i < keys; i++ {
		m.model[fmt.Sprintf("w%05d", i)] = "value"
	}
	partly := 0
	for step := 0; partly == 0 || s.state.frozen != nil; step++ {
		require.Less(t, step, 500)
		b.Reset()
		m.model = m.batch(&b)
		b.Put([]byte("w00500"), make([]byte, 1000)) // inside the range, and newer
		m.model["w00500"] = string(make([]byte, 1000))
		require.NoError(t, s.Commit(&b))
		if n := baseKeys(t, s); n > keys/4 && n < keys*3/4 {
			partly++
			m.goOnInCopy(s, filepath.Join(dir, fmt.Sprintf("copy%d.db", step)), opts, 5, anything)
		}
	}
	require.GreaterOrEqual(t, partly, 3)
	m.compare(s)
	verify(t, f.handle)
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	src, err := os.Open(from)
	require.NoError(t, err)
	defer src.Close()
	dst, err := os.Create(to)
	require.NoError(t, err)
	_, err = io.Copy(dst, src)
	require.NoError(t, err)
	require.NoError(t, dst.Close())
}

// TestFailedCommits lets commits fail before and after they reach the file;
// nothing changes for readers, and the same batch, another, or a restart
// follows.
func TestFailedCommits(t *testing.T) {
	for name, opts := range map[string]Options{"quick": quick, "patient": patient} {
		t.Run(name, func(t *testing.T) { failedCommits(t, opts) })
	}
}

func failedCommits(t *testing.T, opts Options) {
	m := newMachine(t, uint64(time.Now().UnixNano()), 300)
	path := filepath.Join(t.TempDir(), "state.db")
	f, err := Open(path, opts)
	require.NoError(t, err)
	s, err := f.Lease("a")
	require.NoError(t, err)
	for range 600 {
		var b kv.Batch
		next := m.batch(&b)
		inFile := false
		for range m.r.IntN(3) {
			inFile = m.r.IntN(2) == 0
			f.fail = failing(inFile)
			require.ErrorIs(t, s.Commit(&b), errInjected)
			f.fail = failure{}
			if m.r.IntN(3) == 0 { // the caller thinks better of it
				b.Reset()
				next = m.batch(&b)
				inFile = false
			}
		}
		if inFile && m.r.IntN(3) == 0 {
			m.compare(s)
			require.NoError(t, s.Close())
			require.NoError(t, f.Close())
			f, err = Open(path, opts)
			require.NoError(t, err)
			s, err = f.Lease("a")
			require.NoError(t, err)
			m.model = next
			m.compare(s)
			continue
		}
		require.NoError(t, s.Commit(&b))
		m.model = next
		if m.r.IntN(20) == 0 {
			m.compare(s)
		}
	}
	verify(t, f.handle)
	require.NoError(t, s.Close())
	require.NoError(t, f.Close())
}

var errInjected = fmt.Errorf("injected")

func failing(inFile bool) failure {
	if inFile {
		return failure{after: errInjected}
	}
	return failure{before: errInjected}
}
