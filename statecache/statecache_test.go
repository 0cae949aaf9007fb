package statecache

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	goleak.VerifyTestMain(m)
}

// quick leaves out syncs and folds early, so that a small test sees all.
var quick = Options{NoSync: true, GenerationBytes: 2000}

func open(t testing.TB, path string, opts Options) *File {
	t.Helper()
	f, err := Open(path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func lease(t testing.TB, f *File, name string) *Space {
	t.Helper()
	s, err := f.Lease(name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// newSpace opens a Space in a file of its own.
func newSpace(t testing.TB, opts Options) *Space {
	t.Helper()
	return lease(t, open(t, filepath.Join(t.TempDir(), "state.db"), opts), "orders")
}

// put commits pairs of keys and values.
func put(t testing.TB, s kv.Store, pairs ...string) {
	t.Helper()
	var b kv.Batch
	for i := 0; i < len(pairs); i += 2 {
		b.Put([]byte(pairs[i]), []byte(pairs[i+1]))
	}
	require.NoError(t, s.Commit(&b))
}

// contents reads everything.
func contents(t testing.TB, r kv.Reader) map[string]string {
	t.Helper()
	out, last := map[string]string{}, ""
	require.NoError(t, r.Scan(nil, nil, func(k, v []byte) error {
		require.True(t, len(out) == 0 || last < string(k), "ascending")
		last = string(k)
		out[last] = string(v)
		return nil
	}))
	return out
}

// verify runs bbolt's own check of the file.
func verify(t testing.TB, h *handle) {
	t.Helper()
	require.NoError(t, h.db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			require.NoError(t, err)
		}
		return nil
	}))
}
