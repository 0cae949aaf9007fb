package windowing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// storeNames are the stores that scripts run on.
var storeNames = []string{"memory"}

// playStore is a store that can be opened again and that fails on demand.
type playStore struct {
	kv      kv.Store
	failing bool // the next commit fails
	reopen  func()
	close   func()
}

func newPlayStore(t *testing.T, name string) *playStore {
	s := &playStore{}
	switch name {
	case "memory":
		s.kv = kv.NewMemory()
		s.reopen, s.close = func() {}, func() {}
	default:
		require.Fail(t, "unknown store", name)
	}
	return s
}

func (s *playStore) Commit(b *kv.Batch) error {
	if s.failing {
		s.failing = false
		return errDisk
	}
	return s.kv.Commit(b)
}
