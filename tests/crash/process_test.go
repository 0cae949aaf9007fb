package crash

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/crash/plugins"
	"github.com/connect-windowed/connect-windowed/windowing/host/failpoint"
)

// lives counts the processes that were started.
var lives atomic.Int64

// patience is how long a process may take to start, to stop or to finish.
const patience = 90 * time.Second

// process is one life of the binary.
type process struct {
	t       testing.TB
	cmd     *exec.Cmd
	started chan struct{} // closed when its output is connected, or never will be
	exited  chan struct{}
	log     *buffer
}

// buffer is a bytes.Buffer for two goroutines.
type buffer struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// run starts the binary with the configuration and an optional failpoint.
func run(t testing.TB, dir, config, point string, args ...string) *process {
	t.Helper()
	env := []string{failpoint.Env + "=" + point}
	// Every second life folds its log all the time and closes in many parts.
	if lives.Add(1)%2 == 0 || strings.HasPrefix(point, failpoint.MidFold) || strings.HasPrefix(point, failpoint.MidClose) {
		env = append(env, failpoint.EnvGeneration+"=32768", failpoint.EnvPart+"=3")
	}
	return launch(t, dir, config, env, args...)
}

// launch starts the binary with the configuration and some environment.
func launch(t testing.TB, dir, config string, env []string, args ...string) *process {
	t.Helper()
	path := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	if len(args) == 0 {
		args = []string{"run", path}
	}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	p := &process{t: t, started: make(chan struct{}), exited: make(chan struct{}), log: &buffer{}, cmd: exec.Command(binary, args...)}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.Env = append(append(os.Environ(), plugins.StartedEnv+"=3"), env...)
	p.cmd.ExtraFiles = []*os.File{write}
	require.NoError(t, p.cmd.Start())
	require.NoError(t, write.Close())
	go func() {
		_, _ = read.Read(make([]byte, 1)) // a byte, or the end of the process
		_ = read.Close()
		close(p.started)
	}()
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(p.kill)
	return p
}

// kill sends SIGKILL and waits for the end.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
}

// term asks for a graceful stop and gives the exit status.
func (p *process) term() int {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.wait()
}

// wait waits for the end by itself and gives the exit status, -1 for SIGKILL, and
// for SIGTERM where it came before the process listened to it.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.exited
		require.Fail(p.t, "the process does not end", p.log.String())
	}
	return p.status()
}

func (p *process) status() int {
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM) {
		return -1
	}
	require.False(p.t, status.Signaled(), "ended by %s\n%s", status.Signal(), p.log)
	return status.ExitStatus()
}

// ready waits until the output is connected.
func (p *process) ready() {
	p.t.Helper()
	select {
	case <-p.started:
	case <-time.After(patience):
		require.Fail(p.t, "the process does not start", p.log.String())
	}
}

// killAfter kills the process some time after its output is connected, unless it
// ends before, and says whether it was killed, by this or by a failpoint.
func (p *process) killAfter(d time.Duration) bool {
	p.t.Helper()
	p.ready()
	select {
	case <-p.exited:
	case <-time.After(d):
		p.kill()
	}
	code := p.status()
	require.False(p.t, strings.Contains(p.log.String(), "DATA RACE"), "%s", p.log)
	require.Contains(p.t, []int{0, -1}, code, "exit status\n%s", p.log)
	return code == -1
}

func containsFold(text, word string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(word))
}
