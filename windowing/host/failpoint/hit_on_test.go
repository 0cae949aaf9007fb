//go:build failpoints

package failpoint

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		text, name string
		n          int64
		fails      bool
	}{
		{text: "after_commit", name: AfterCommit, n: 1},
		{text: "on_start:1", name: OnStart, n: 1},
		{text: "mid_fold:250", name: MidFold, n: 250},
		{text: "mid_fold:0", fails: true},
		{text: "mid_fold:-1", fails: true},
		{text: "mid_fold:", fails: true},
		{text: "mid_fold:x", fails: true},
		{text: "midfold", fails: true},
		{text: ":3", fails: true},
	} {
		name, n, err := parse(test.text)
		require.Equal(t, test.fails, err != nil, test.text)
		require.Equal(t, test.name, name, test.text)
		require.Equal(t, test.n, n, test.text)
	}
}

// The process under test is this test binary, started again.
const child = "FAILPOINT_TEST_CHILD"

func TestHit(t *testing.T) {
	if os.Getenv(child) != "" {
		for range 3 {
			Hit(AfterCommit)
		}
		os.Exit(7)
	}
	for _, test := range []struct {
		env    string
		killed bool
		code   int
	}{
		{env: "", code: 7},
		{env: BeforeAck, code: 7},
		{env: AfterCommit, killed: true},
		{env: AfterCommit + ":3", killed: true},
		{env: AfterCommit + ":4", code: 7},
		{env: "nowhere", code: 2},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHit$")
		cmd.Env = append(os.Environ(), child+"=1", Env+"="+test.env)
		_ = cmd.Run()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		require.Equal(t, test.killed, status.Signaled() && status.Signal() == syscall.SIGKILL, test.env)
		if !test.killed {
			require.Equal(t, test.code, status.ExitStatus(), test.env)
		}
	}
}

func TestNumbers(t *testing.T) {
	require.Zero(t, Generation())
	require.Zero(t, Part())
	t.Setenv(EnvGeneration, "65536")
	t.Setenv(EnvPart, "3")
	require.Equal(t, 65536, Generation())
	require.Equal(t, 3, Part())
}
