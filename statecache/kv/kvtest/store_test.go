package kvtest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

func TestStore(t *testing.T) {
	s := Memory()
	var b kv.Batch
	b.Put([]byte("k"), []byte("v"))

	s.FailNext(2)
	require.ErrorIs(t, s.Commit(&b), ErrInjected)
	require.ErrorIs(t, s.Commit(&b), ErrInjected)
	v, err := s.Get([]byte("k"))
	require.NoError(t, err)
	require.Nil(t, v, "a failed commit leaves nothing")

	s.FailAfterNext(1)
	require.ErrorIs(t, s.Commit(&b), ErrInjected)
	v, err = s.Get([]byte("k"))
	require.NoError(t, err)
	require.Equal(t, "v", string(v), "applied all the same")
	require.NoError(t, s.Commit(&b))

	mine := errors.New("mine")
	s.OnCommit(func(got *kv.Batch) error {
		require.Equal(t, 1, got.Len())
		return mine
	})
	require.ErrorIs(t, s.Commit(&b), mine)
	s.OnCommit(nil)
	require.NoError(t, s.Commit(&b))
	require.NoError(t, s.Scan(nil, nil, func(_, _ []byte) error { return nil }))
	require.Equal(t, Counters{Commits: 2, Failed: 4, Gets: 2, Scans: 1, Ops: 2, Bytes: 2 * int64(b.Size())}, s.Counters())
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Commit(&b), kv.ErrClosed)
}
