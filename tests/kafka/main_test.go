// Package kafka holds what is proved with the real binary and a broker: Kafka to
// windows to Kafka, compared with the oracle, while the binary or the broker dies.
//
// Without a build tag the broker is kfake, so that only Go is needed. With the tag
// servers the same tests run against Apache Kafka, which kafka.sh starts, with more
// kills, and what only a real broker can show is added.
package kafka

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// binary is the product's command, as users run it.
var binary string

func TestMain(m *testing.M) { os.Exit(prepare(m.Run)) }

func prepare(run func() int) int {
	dir, err := os.MkdirTemp("", "connect-windowed-kafka-")
	if err == nil {
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "connect-windowed")
		build := exec.Command("go", "build", "-o", binary, "./cmd/connect-windowed")
		build.Dir = filepath.Join("..", "..")
		var out []byte
		if out, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err == nil {
		err = startShared(filepath.Join(dir, "broker"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stopShared()
	return run()
}

// seed gives the seed of a test, printed, or SEED.
func seed(t *testing.T) uint64 {
	n := rand.Uint64N(1 << 40)
	if text := os.Getenv("SEED"); text != "" {
		var err error
		n, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("SEED=%d", n)
	return n
}
