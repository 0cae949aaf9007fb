//go:build !servers

package kafka

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/connect-windowed/connect-windowed/tests/kafka/broker"
)

// kills is how many kill -9 a test of them stands for.
const kills = 10

func startShared(string) error { return nil }
func stopShared()              {}

// open gives a broker that other tests may use too.
func open(t *testing.T) *cluster { return openOwn(t) }

// openOwn gives a broker that the test may stop.
func openOwn(t *testing.T) *cluster {
	t.Helper()
	b, err := broker.StartFake(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Stop() })
	return connect(t, b)
}

// openSecure gives a broker with passwords and permissions.
func openSecure(t *testing.T) *cluster {
	t.Helper()
	b, err := broker.StartFake(t.TempDir(), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", admin.user, admin.password), kfake.User("PLAIN", guest.user, guest.password))
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Stop() })
	return connect(t, b, admin.option())
}
