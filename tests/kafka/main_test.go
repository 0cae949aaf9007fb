// Package kafka holds what is proved with the real binary and a broker: Kafka to
// windows to Kafka, compared with the oracle, while the binary or the broker dies.
//
// Without a build tag the broker is kfake, so that only Go is needed. With the tag
// servers the same tests run against Apache Kafka, which kafka.sh starts, with more
// kills, and what only a real broker can show is added.
package kafka

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// binary is the product's command, as users run it.
var binary string

func TestMain(m *testing.M) { os.Exit(prepare(m.Run)) }

func prepare(run func() int) int {
	dir, err := os.MkdirTemp("", "connect-windowed-kafka-")
	if err == nil {
		defer os.RemoveAll(dir)
		binary, err = life.Build(dir)
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
