package statecache

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// TestNoSpaceLeft fills a file system of its own. It needs the right to mount
// one; TestDiskFull covers the same ground without.
func TestNoSpaceLeft(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Logf("no right to mount a small file system: %v", err)
		return
	}
	defer func() { require.NoError(t, syscall.Unmount(dir, 0)) }()
	f, err := Open(filepath.Join(dir, "state.db"), Options{GenerationBytes: 64 << 10})
	require.NoError(t, err)
	defer f.Close()
	s, err := f.Lease("orders")
	require.NoError(t, err)
	defer s.Close()
	want, failed, size := map[string]string{}, 0, 1024
	for n := 0; n < 400; n++ {
		var b kv.Batch
		for i := range 50 {
			key, value := fmt.Sprintf("k%d/%d", n%200, i), fmt.Sprintf("%0100d", n)
			b.Put([]byte(key), []byte(value))
			want[key] = value
		}
		err := s.Commit(&b)
		if err == nil {
			continue
		}
		require.ErrorContains(t, err, "no space left on device")
		require.ErrorContains(t, err, f.Path())
		v, rerr := s.Get(fmt.Appendf(nil, "k%d/0", n%200))
		require.NoError(t, rerr)
		require.NotEqual(t, want[fmt.Sprintf("k%d/0", n%200)], string(v), "a failed batch is not visible")
		for ; err != nil; size += 512 {
			failed++
			require.ErrorContains(t, err, "no space left on device")
			require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%dk", size)))
			err = s.Commit(&b)
		}
	}
	require.Positive(t, failed)
	require.Equal(t, want, contents(t, s))
	verify(t, f.handle)
	require.Nil(t, f.broken.Load())
}
