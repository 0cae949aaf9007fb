package statecache

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

func TestOpenSharesOneHandle(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "state.db")
	f := open(t, path, Options{})
	require.Equal(t, path, f.Path())
	size, err := f.Size()
	require.NoError(t, err)
	require.Positive(t, size)

	link, hard := filepath.Join(dir, "soft.db"), filepath.Join(dir, "hard.db")
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, os.Link(path, hard))
	t.Chdir(dir)
	for _, other := range []string{path, link, hard, "a/../a/b/state.db"} {
		g, err := Open(other, Options{LockTimeout: -1})
		require.NoError(t, err, other)
		require.Same(t, f.handle, g.handle, other)
		require.NoError(t, g.Close())
		require.NoError(t, g.Close(), "twice is once")
	}
	put(t, lease(t, f, "a"), "k", "v")
}

func TestOpenConcurrently(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 10 {
				f, err := Open(path, Options{NoSync: true})
				if err != nil {
					t.Error(err)
					return
				}
				s, err := f.Lease(fmt.Sprint(i))
				if err != nil {
					t.Error(err)
					return
				}
				var b kv.Batch
				b.Put([]byte{byte(j)}, nil)
				if err := s.Commit(&b); err != nil {
					t.Error(err)
				}
				_ = f.Close()
				_ = s.Close()
			}
		})
	}
	wg.Wait()
	require.Empty(t, registry.open)
	f := open(t, path, Options{})
	names, err := f.Names()
	require.NoError(t, err)
	require.Len(t, names, 16)
	require.Len(t, contents(t, lease(t, f, "7")), 10)
}

// TestHeldInThisProcess: somebody in the process has opened the file without
// us; that must be an error in time, too.
func TestHeldInThisProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	_, err = Open(path, Options{LockTimeout: 50 * time.Millisecond})
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, db.Close())
	open(t, path, Options{})
}

func TestFileStaysOpenForItsSpaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	f, err := Open(path, Options{NoSync: true})
	require.NoError(t, err)
	s, err := f.Lease("a")
	require.NoError(t, err)
	c, err := f.Cache("a")
	require.NoError(t, err)
	require.NoError(t, f.Close())

	put(t, s, "k", "v")
	require.NoError(t, c.Set(at(0), "k", nil, 0))
	require.NoError(t, s.Close())
	require.NoError(t, c.Set(at(0), "l", nil, 0))
	require.NoError(t, c.Close())
	require.Empty(t, registry.open)

	// Everything closed says so.
	var b kv.Batch
	b.Put([]byte("k"), nil)
	require.ErrorIs(t, s.Commit(&b), ErrClosed)
	_, err = s.Get([]byte("k"))
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.Scan(nil, nil, nil), ErrClosed)
	require.Zero(t, s.Stats())
	require.ErrorIs(t, c.Set(at(0), "k", nil, 0), ErrClosed)
	require.ErrorIs(t, c.Add(at(0), "k", nil, 0), ErrClosed)
	require.ErrorIs(t, c.Delete("k"), ErrClosed)
	_, err = c.Get(at(0), "k")
	require.ErrorIs(t, err, ErrClosed)
	_, err = c.Sweep(at(0), 1)
	require.ErrorIs(t, err, ErrClosed)
	_, err = f.Lease("a")
	require.ErrorIs(t, err, ErrClosed)
	_, err = f.Cache("a")
	require.ErrorIs(t, err, ErrClosed)
	_, err = f.Names()
	require.ErrorIs(t, err, ErrClosed)
	_, err = f.Size()
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, s.Close())
	require.NoError(t, c.Close())
}

func TestLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	f, g := open(t, path, Options{NoSync: true}), open(t, path, Options{NoSync: true})
	s, err := f.Lease("orders")
	require.NoError(t, err)
	_, err = g.Lease("orders")
	require.ErrorIs(t, err, ErrLeased)
	require.ErrorContains(t, err, `"orders"`)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "Give each its own name")
	lease(t, g, "payments")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	lease(t, g, "orders")

	for _, name := range []string{"", strings.Repeat("n", maxName+1)} {
		_, err = f.Lease(name)
		require.ErrorIs(t, err, ErrName)
		_, err = f.Cache(name)
		require.ErrorIs(t, err, ErrName)
	}
	names, err := f.Names()
	require.NoError(t, err)
	require.Empty(t, names, "a lease alone writes nothing")
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("not a database\n", 1000)), 0o600))
	short := filepath.Join(dir, "short")
	require.NoError(t, os.WriteFile(short, []byte("x"), 0o600))

	foreign := filepath.Join(dir, "foreign")
	other(t, foreign, &bolt.Options{}, func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("theirs"))
		return err
	})
	unsynced := filepath.Join(dir, "unsynced")
	other(t, unsynced, &bolt.Options{NoFreelistSync: true}, func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("theirs"))
		return err
	})
	format := func(name string, record []byte) string {
		path := filepath.Join(dir, name)
		other(t, path, &bolt.Options{}, func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket(bucketFormat)
			if err != nil || record == nil {
				return err
			}
			return b.Put(keyFormat, record)
		})
		return path
	}
	for _, c := range []struct {
		path string
		is   error
		says string
	}{
		{"", nil, "path of the state file: it is empty"},
		{dir, nil, "directory"},
		{filepath.Join(text, "below.db"), nil, "directory of the state file"},
		{text, ErrForeign, "is no bbolt file. Give another path, or move it away"},
		{short, ErrForeign, "(1 bytes) is no bbolt file"},
		{foreign, ErrForeign, `a bucket "theirs" and no format record`},
		{unsynced, ErrForeign, "NoFreelistSync"},
		{format("newer", kv.AppendRecord(nil, formatVersion+1, []byte("more"))), ErrNewer, "has format 2, this program reads up to 1. Use the newer program, or another file"},
		{format("zero", kv.AppendRecord(nil, 0, nil)), ErrDamaged, "format 0"},
		{format("trailing", kv.AppendRecord(nil, 1, []byte("x"))), ErrDamaged, "with 1 bytes"},
		{format("garbage", []byte("garbage")), ErrDamaged, "checksum"},
		{format("none", nil), ErrDamaged, "record of 0 bytes"},
	} {
		t.Run(filepath.Base(c.path), func(t *testing.T) {
			before, _ := os.ReadFile(c.path)
			_, err := Open(c.path, Options{LockTimeout: -1})
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, c.path)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			after, _ := os.ReadFile(c.path)
			require.Equal(t, before, after, "left byte for byte as it was")
		})
	}
	require.Empty(t, registry.open)
}

// other writes a bbolt file as another program would.
func other(t *testing.T, path string, opts *bolt.Options, write func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, opts)
	require.NoError(t, err)
	require.NoError(t, db.Update(write))
	require.NoError(t, db.Close())
}

func TestEmptyFileIsNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	put(t, lease(t, open(t, path, Options{}), "a"), "k", "v")
	// A bbolt file without buckets is new, too.
	path = filepath.Join(t.TempDir(), "state.db")
	other(t, path, &bolt.Options{}, func(*bolt.Tx) error { return nil })
	put(t, lease(t, open(t, path, Options{}), "a"), "k", "v")
}

// TestInterruptedCreation: bbolt writes four pages when it makes a file. Any
// part of them, or zeros in their place, is a file that never held anything.
func TestInterruptedCreation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	size := os.Getpagesize()
	require.Len(t, whole, 4*size)
	for _, data := range [][]byte{
		whole[:80], whole[:size], whole[:size+80], whole[:3*size], make([]byte, 80), make([]byte, 4*size),
		append(bytes.Clone(whole[:size]), make([]byte, 3*size)...), append(bytes.Clone(whole[:3*size]), make([]byte, size)...),
	} {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		f, err := Open(path, Options{})
		require.NoError(t, err)
		s, err := f.Lease("a")
		require.NoError(t, err)
		put(t, s, "k", "v")
		require.NoError(t, s.Close())
		require.NoError(t, f.Close())
	}
	// Zeros in the place of a file that was in use are damage.
	require.NoError(t, os.WriteFile(path, make([]byte, 8*size), 0o600))
	_, err = Open(path, Options{})
	require.ErrorIs(t, err, ErrForeign)
}

// TestOtherPageSize: a file that was made on a machine with larger pages.
func TestOtherPageSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	other(t, path, &bolt.Options{PageSize: 16 << 10}, func(*bolt.Tx) error { return nil })
	m := newMachine(t, uint64(time.Now().UnixNano()), 300)
	f := open(t, path, quick)
	require.Equal(t, 16<<10, f.db.Info().PageSize)
	s := lease(t, f, "a")
	var b kv.Batch
	for range 300 {
		b.Reset()
		m.model = m.batch(&b)
		require.NoError(t, s.Commit(&b))
	}
	m.compare(s)
	verify(t, f.handle)
}
