//go:build servers

package kafka

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/kafka/broker"
)

// kills is how many kill -9 a test of them stands for.
const kills = 50

var shared *broker.Real

func startShared(dir string) (err error) {
	if err = os.MkdirAll(dir, 0o700); err == nil {
		shared, err = broker.StartReal(dir)
	}
	return err
}

func stopShared() { _ = shared.Stop() }

// open gives a broker that other tests may use too.
func open(t *testing.T) *cluster { return connect(t, shared) }

// openOwn gives a broker that the test may stop.
func openOwn(t *testing.T) *cluster {
	t.Helper()
	b, err := broker.StartReal(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Stop() })
	return connect(t, b)
}

// openSecure gives a broker with passwords and permissions.
func openSecure(t *testing.T) *cluster {
	t.Helper()
	b, err := broker.StartReal(t.TempDir(),
		"listeners=SASL_PLAINTEXT://127.0.0.1:$PORT,CONTROLLER://127.0.0.1:$CONTROLLER_PORT",
		"advertised.listeners=SASL_PLAINTEXT://127.0.0.1:$PORT",
		"listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
		"inter.broker.listener.name=SASL_PLAINTEXT", "sasl.mechanism.inter.broker.protocol=PLAIN", "sasl.enabled.mechanisms=PLAIN",
		fmt.Sprintf("listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=%q password=%q user_%s=%q user_%s=%q;",
			admin.user, admin.password, admin.user, admin.password, guest.user, guest.password),
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS;User:"+admin.user)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Stop() })
	return connect(t, b, admin.option())
}
