// Package tests proves the product from outside: through the YAML that a user
// writes, against answers that came from elsewhere.
package tests

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// childEnv is set in a process that a test started for itself.
const childEnv = "CONNECT_WINDOWED_TEST_CHILD"

// TestMain wants every goroutine gone at the end.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}

// inChild runs the test in a process of its own: when the constructor of a
// processor fails, Benthos closes neither the input nor the processors that it
// has constructed before, and their goroutines stay.
func inChild(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(childEnv) != "" {
		test(t)
		return
	}
	var path []string
	for _, name := range strings.Split(t.Name(), "/") {
		path = append(path, "^"+regexp.QuoteMeta(name)+"$")
	}
	cmd := exec.Command(os.Args[0], "-test.run="+strings.Join(path, "/"), "-test.count=1")
	cmd.Env = append(os.Environ(), childEnv+"=yes")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "no tests to run")
}

// patience is how long something that is due may take to come.
const patience = 2 * time.Minute
