package kafka

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long anything that must happen may take.
const patience = 60 * time.Second

// process is one life of the binary.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	exited chan struct{}
	log    *buffer
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

// run starts the binary with a configuration.
func run(t *testing.T, dir, config string, env ...string) *process {
	t.Helper()
	path := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	p := &process{t: t, exited: make(chan struct{}), log: &buffer{}, cmd: exec.Command(binary, "run", path)}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	require.NoError(t, p.cmd.Start())
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

// term asks for a graceful stop and gives the exit status, -1 where the process did
// not listen to it yet.
func (p *process) term() int {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.wait()
}

// wait waits for the end and gives the exit status.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.exited
		require.Fail(p.t, "the process does not end", "%s", p.tail())
	}
	return p.cmd.ProcessState.ExitCode()
}

// running says that the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// tail is the end of the log.
func (p *process) tail() string {
	text := p.log.String()
	return text[max(0, len(text)-6000):]
}

// says waits until the log holds all of some words in one line.
func (p *process) says(words ...string) string {
	p.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for line := range strings.Lines(p.log.String()) {
			if contains(line, words...) {
				return line
			}
		}
	}
	require.Fail(p.t, "the log does not say so", "%v\n%s", words, p.tail())
	return ""
}

func contains(text string, words ...string) bool {
	for _, word := range words {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
			return false
		}
	}
	return true
}
