// Package life builds the command and runs lives of it, for tests that kill it.
package life

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Build builds the command into a folder and gives its path. The arguments stand behind
// go build. It is called from a folder two below the root, as those of these tests are.
func Build(dir string, args ...string) (binary string, err error) {
	binary = filepath.Join(dir, "connect-windowed")
	cmd := exec.Command("go", append(append([]string{"build", "-o", binary}, args...), "./cmd/connect-windowed")...)
	cmd.Dir = filepath.Join("..", "..")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return binary, nil
}

// Seed gives the seed of a test, printed, or that of the environment variable SEED.
func Seed(t testing.TB) uint64 {
	n := rand.Uint64N(1 << 40)
	if text := os.Getenv("SEED"); text != "" {
		var err error
		n, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("SEED=%d", n)
	return n
}

// Log is what a process has written. Any goroutine may use it.
type Log struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Process is one life of the command.
type Process struct {
	Cmd    *exec.Cmd
	Log    *Log          // of both standard output and standard error
	Exited chan struct{} // closed when it has ended
}

// Start starts a command, which the end of the test kills.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: cmd, Log: &Log{}, Exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.Log, p.Log
	require.NoError(t, cmd.Start())
	go func() {
		_ = cmd.Wait()
		close(p.Exited)
	}()
	t.Cleanup(p.Kill)
	return p
}

// Run writes a configuration into a folder and starts a binary with it there.
func Run(t testing.TB, binary, dir, config string, env ...string) *Process {
	t.Helper()
	cmd := exec.Command(binary, "run", Config(t, dir, config))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	return Start(t, cmd)
}

// Config writes a configuration into a folder and gives its path.
func Config(t testing.TB, dir, config string) string {
	t.Helper()
	path := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	return path
}

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Signal(syscall.SIGKILL)
	<-p.Exited
}

// Terminate asks for a graceful stop and does not wait for it.
func (p *Process) Terminate() { _ = p.Cmd.Process.Signal(syscall.SIGTERM) }

// Wait waits for the end. A process that does not end in time fails the test, which
// shows where its goroutines stand.
func (p *Process) Wait(t testing.TB, patience time.Duration) {
	t.Helper()
	select {
	case <-p.Exited:
	case <-time.After(patience):
		_ = p.Cmd.Process.Signal(syscall.SIGQUIT)
		<-p.Exited
		require.Fail(t, "the process does not end", "%s", p.Log)
	}
}
