package crash

import (
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/crash/plugins"
	"github.com/connect-windowed/connect-windowed/tests/life"
	"github.com/connect-windowed/connect-windowed/windowing/host/failpoint"
)

// lives counts the processes that were started.
var lives atomic.Int64

// patience is how long a process may take to start, to stop or to finish.
const patience = 2 * time.Minute

// process is one life of the binary.
type process struct {
	*life.Process
	t       testing.TB
	started chan struct{} // closed when its output is connected, or never will be
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
	path := life.Config(t, dir, config)
	if len(args) == 0 {
		args = []string{"run", path}
	}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), plugins.StartedEnv+"=3"), env...)
	cmd.ExtraFiles = []*os.File{write}
	p := &process{life.Start(t, cmd), t, make(chan struct{})}
	require.NoError(t, write.Close())
	go func() {
		_, _ = read.Read(make([]byte, 1)) // a byte, or the end of the process
		_ = read.Close()
		close(p.started)
	}()
	return p
}

// term asks for a graceful stop and gives the exit status.
func (p *process) term() int {
	p.Terminate()
	return p.wait()
}

// wait waits for the end by itself and gives the exit status, -1 for SIGKILL, and
// for SIGTERM where it came before the process listened to it.
func (p *process) wait() int {
	p.t.Helper()
	p.Wait(p.t, patience)
	return p.status()
}

func (p *process) status() int {
	status := p.Cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM) {
		return -1
	}
	require.False(p.t, status.Signaled(), "ended by %s\n%s", status.Signal(), p.Log)
	return status.ExitStatus()
}

// ready waits until the output is connected.
func (p *process) ready() {
	p.t.Helper()
	select {
	case <-p.started:
	case <-time.After(patience):
		require.Fail(p.t, "the process does not start", p.Log.String())
	}
}

// killAfter kills the process some time after its output is connected, unless it
// ends before, and says whether it was killed, by this or by a failpoint.
func (p *process) killAfter(d time.Duration) bool {
	p.t.Helper()
	p.ready()
	select {
	case <-p.Exited:
	case <-time.After(d):
		p.Kill()
	}
	code := p.status()
	require.False(p.t, strings.Contains(p.Log.String(), "DATA RACE"), "%s", p.Log)
	require.Contains(p.t, []int{0, -1}, code, "exit status\n%s", p.Log)
	return code == -1
}

func containsFold(text, word string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(word))
}
