package windowing_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache"
	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// storeNames are the stores that scripts run on.
var storeNames = []string{"memory", "bbolt"}

// playStore is a store that can be opened again and that fails on demand.
type playStore struct {
	kv      kv.Store
	failing bool // the next commit fails
	reopen  func()
	close   func()
}

func newPlayStore(t *testing.T, name string) *playStore {
	switch name {
	case "memory":
		return &playStore{kv: kv.NewMemory(), reopen: func() {}, close: func() {}}
	case "bbolt":
		return newFileStore(t)
	}
	require.Fail(t, "unknown store", name)
	return nil
}

// newFileStore gives a space in a file, which is closed and opened at every
// restart. The log is so short that every few commits fold it into the base.
func newFileStore(t *testing.T) *playStore {
	path := filepath.Join(t.TempDir(), "state.db")
	s := &playStore{}
	open := func() {
		file, err := statecache.Open(path, statecache.Options{NoSync: true, GenerationBytes: 512})
		require.NoError(t, err)
		space, err := file.Lease("script")
		require.NoError(t, err)
		s.kv = space
		s.close = func() {
			require.NoError(t, space.Close())
			require.NoError(t, file.Close())
		}
	}
	s.reopen = func() {
		s.close()
		open()
	}
	open()
	return s
}

func (s *playStore) Commit(b *kv.Batch) error {
	if s.failing {
		s.failing = false
		return errDisk
	}
	return s.kv.Commit(b)
}
