package statecache

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

const cached = 40

// sample writes a small file with everything in it: a base of several pages
// and long keys, a frozen and an active generation, a cache, free pages.
func sample(t *testing.T) (data []byte, want map[string]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample.db")
	f, err := Open(path, Options{NoSync: true, GenerationBytes: 12_000})
	require.NoError(t, err)
	s, err := f.Lease("a")
	require.NoError(t, err)
	m := newMachine(t, 1, 90)
	var b kv.Batch
	for step := 0; step < 100 || !s.Stats().Folding; step++ {
		b.Reset()
		m.model = m.batch(&b)
		require.NoError(t, s.Commit(&b))
	}
	c, err := f.Cache("c")
	require.NoError(t, err)
	for i := range cached {
		require.NoError(t, c.Set(at(0), fmt.Sprint(i), []byte(strings.Repeat(fmt.Sprint(i), 40)), time.Hour))
	}
	require.NoError(t, errors.Join(c.Close(), s.Close(), f.Close()))
	data, err = os.ReadFile(path)
	require.NoError(t, err)
	return data, m.model
}

// use opens a file and does everything with it. It returns the first error,
// and fails the test where an answer is wrong: damage may be an error or may
// not matter, and is never another answer.
func use(t *testing.T, path string, want map[string]string) error {
	t.Helper()
	f, err := Open(path, Options{LockTimeout: -1, NoSync: true, GenerationBytes: 12_000})
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(useSpace(t, f, want), useCache(t, f))
}

func useSpace(t *testing.T, f *File, want map[string]string) error {
	s, err := f.Lease("a")
	if err != nil {
		return err
	}
	defer s.Close()
	var errs []error
	for k, v := range want {
		got, err := s.Get([]byte(k))
		if err == nil {
			require.True(t, got != nil && string(got) == v, "Get of %.20q", k)
		}
		errs = append(errs, err)
	}
	v, err := s.Get([]byte("k00"))
	require.Nil(t, v)
	errs = append(errs, err)
	got := map[string]string{}
	err = s.Scan(nil, nil, func(k, v []byte) error {
		w, there := want[string(k)]
		require.True(t, there && w == string(v), "Scan sees %.20q", k)
		got[string(k)] = w
		return nil
	})
	if err == nil {
		require.Len(t, got, len(want))
	}
	errs = append(errs, err)
	// Commits fold on, delete and overwrite all.
	var b kv.Batch
	for i := range 40 {
		b.Reset()
		b.Put(fmt.Appendf(nil, "k%05d", i*7), bytes.Repeat([]byte{'z'}, 600))
		b.Delete(fmt.Appendf(nil, "k%05d", i*7+2), fmt.Appendf(nil, "k%05d", i*7+5))
		errs = append(errs, s.Commit(&b))
	}
	return errors.Join(errs...)
}

func useCache(t *testing.T, f *File) error {
	c, err := f.Cache("c")
	if err != nil {
		return err
	}
	defer c.Close()
	var errs []error
	for i := range cached {
		v, err := c.Get(at(0), fmt.Sprint(i))
		if err == nil {
			require.Equal(t, strings.Repeat(fmt.Sprint(i), 40), string(v))
		}
		require.NotErrorIs(t, err, ErrNotFound)
		errs = append(errs, err, c.Set(at(0), fmt.Sprint(i), nil, 0))
	}
	_, err = c.Sweep(at(1e6), 1000)
	return errors.Join(append(errs, err)...)
}

// damaged says that an error is about damage, names the file and the remedy.
func damaged(t *testing.T, err error, path string) {
	t.Helper()
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "Put a copy from a backup in its place")
	var d *DamageError
	require.ErrorAs(t, err, &d)
	require.Equal(t, path, d.Path)
	require.NotContains(t, err.Error(), "goroutine")
}

// TestZeroedPage zeroes each page of the file in turn.
func TestZeroedPage(t *testing.T) {
	data, want := sample(t)
	size := os.Getpagesize()
	seen := 0
	for page := range highWater(t, data) {
		path := filepath.Join(t.TempDir(), "zeroed.db")
		bad := bytes.Clone(data)
		clear(bad[page*size : (page+1)*size])
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		if err := use(t, path, want); err != nil {
			damaged(t, err, path)
			seen++
		} else {
			require.Greater(t, page, 1, "a meta page must be missed")
		}
		require.NoError(t, os.Remove(path))
	}
	t.Logf("%d of %d pages mattered", seen, highWater(t, data))
	require.Greater(t, seen, 20)
	require.Empty(t, registry.open)
}

// TestFlippedBits damages single bytes anywhere. Not every one is seen (that
// of a free page, a length that still fits), but none ends the process.
func TestFlippedBits(t *testing.T) {
	data, _ := sample(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	seen := 0
	path := filepath.Join(t.TempDir(), "flipped.db")
	for range 150 {
		bad := bytes.Clone(data)
		bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		f, err := Open(path, Options{LockTimeout: -1, NoSync: true})
		if err == nil {
			var s *Space
			if s, err = f.Lease("a"); err == nil {
				err = s.Scan(nil, nil, func(_, _ []byte) error { return nil })
				require.NoError(t, s.Close())
			}
			require.NoError(t, f.Close())
		}
		if err != nil {
			require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrForeign) || errors.Is(err, ErrNewer), "%v", err)
			seen++
		}
	}
	t.Logf("%d of 150 seen by opening and scanning one of the states", seen)
}

// TestCutFile cuts the file at every page, and inside pages.
func TestCutFile(t *testing.T) {
	data, _ := sample(t)
	size := os.Getpagesize()
	path := filepath.Join(t.TempDir(), "cut.db")
	// Beyond the high-water mark there is only what bbolt keeps in reserve.
	for at, end := size, size*highWater(t, data); at <= end; at += max(size, at/(8*size)*size) {
		for _, cut := range []int{at - size + 1, at - 1} {
			require.NoError(t, os.WriteFile(path, data[:cut], 0o600))
			_, err := Open(path, Options{LockTimeout: -1})
			if cut < 80 {
				require.ErrorIs(t, err, ErrForeign)
			} else {
				damaged(t, err, path)
			}
			after, rerr := os.ReadFile(path)
			require.NoError(t, rerr)
			require.True(t, bytes.Equal(data[:cut], after), "left as it was")
		}
	}
}

func highWater(t *testing.T, data []byte) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "whole.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	m, err := readMetas(f, int64(len(data)))
	require.NoError(t, err)
	return int(m.pages)
}

// TestCutWhileOpen takes the end of the file away under the map: the access
// faults, and the fault is an error.
func TestCutWhileOpen(t *testing.T) {
	data, want := sample(t)
	path := filepath.Join(t.TempDir(), "open.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	f, err := Open(path, Options{NoSync: true, GenerationBytes: 12_000})
	require.NoError(t, err)
	s, err := f.Lease("a")
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, int64(2*os.Getpagesize())))
	for k := range want {
		if _, err = s.Get([]byte(k)); err != nil {
			break
		}
	}
	damaged(t, err, path)
	err = s.Scan(nil, nil, func(_, _ []byte) error { return nil })
	damaged(t, err, path)
	var b kv.Batch
	b.Put([]byte("k"), nil)
	damaged(t, s.Commit(&b), path)
	damaged(t, s.Commit(&b), path)
	require.NoError(t, s.Close())
	_ = f.Close()
	require.Empty(t, registry.open)
}

// TestNoWriteAfterDamage: what bbolt has in memory after a panic is not
// trusted with the file.
func TestNoWriteAfterDamage(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "state.db"), quick)
	s := lease(t, f, "a")
	put(t, s, "k", "v")
	f.broken.Store(&DamageError{f.path, "a test", kv.ErrCorrupt})
	var b kv.Batch
	b.Put([]byte("k"), []byte("w"))
	damaged(t, s.Commit(&b), f.path)
	require.Equal(t, map[string]string{"k": "v"}, contents(t, s), "reads go on")
}

// TestPanicOfVisit: a caller's panic is not damage.
func TestPanicOfVisit(t *testing.T) {
	s := newSpace(t, quick)
	put(t, s, "k", "v")
	require.PanicsWithValue(t, "mine", func() {
		_ = s.Scan(nil, nil, func(_, _ []byte) error { panic("mine") })
	})
	put(t, s, "k", "w")
}

func FuzzOpenEntry(f *testing.F) {
	stored := appendStored(nil, []byte("key"))
	f.Add(stored, appendEntry(nil, stored, []byte("key"), []byte("value")))
	long := bytes.Repeat([]byte("x"), longKey+1)
	stored = appendStored(nil, long)
	f.Add(stored, appendEntry(nil, stored, long, []byte("value")))
	f.Fuzz(func(t *testing.T, stored, record []byte) {
		key, value, err := openEntry(stored, record)
		if err != nil {
			require.ErrorIs(t, err, kv.ErrCorrupt)
			return
		}
		if bytes.Equal(stored, appendStored(nil, key)) {
			require.Equal(t, record, appendEntry(nil, stored, key, value))
		}
	})
}

func FuzzReadState(f *testing.F) {
	s := spaceState{active: &generation{id: 3, first: 10}, frozen: &generation{id: 2, first: 4}, pos: "pos", next: 12}
	f.Add(s.append(nil))
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, payload []byte) {
		s, err := decodeState(payload)
		if err != nil {
			require.ErrorIs(t, err, kv.ErrCorrupt)
			return
		}
		again, err := decodeState(s.append(nil))
		require.NoError(t, err)
		s.pos = s.pos[:min(len(s.pos), maxPos)]
		require.Equal(t, s, again)
	})
}
