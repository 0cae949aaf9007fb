//go:build unix

package processors_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/processors"
)

// A file that another process holds is an error after a while, for the cache and
// for a host, and a dry run does not look at it.
func TestLockedFile(t *testing.T) {
	conf, path := bbolt(t, "lock_timeout: 50ms")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	other, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, syscall.Flock(int(other.Fd()), syscall.LOCK_EX)) // as another process would
	host := "processor_resources: [ { label: it, windowed: { state: store, processors: [ " + mark + ", " + count + " ] } } ]\n"
	for _, err := range []error{
		construct(t, conf+host),
		construct(t, conf+win("state: store")),
	} {
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "another process")
	}
	using(t, resourcesOf(t, conf), func(c service.Cache) {
		_, err := c.Get(background, "a")
		require.ErrorContains(t, err, "another process")
	})

	processors.SetDryRun(true)
	defer processors.SetDryRun(false)
	require.NoError(t, construct(t, conf+host))
	require.NoError(t, construct(t, conf+win("state: store")))
	processors.SetDryRun(false)
	require.NoError(t, syscall.Flock(int(other.Fd()), syscall.LOCK_UN))
	require.NoError(t, construct(t, conf+host), "an empty file is a new one")
}
