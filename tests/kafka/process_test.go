package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// patience is how long anything that must happen may take.
const patience = 2 * time.Minute

// process is one life of the binary.
type process struct {
	*life.Process
	t *testing.T
}

// run starts the binary with a configuration.
func run(t *testing.T, dir, config string, env ...string) *process {
	t.Helper()
	return &process{life.Run(t, binary, dir, config, env...), t}
}

// term asks for a graceful stop and gives the exit status, -1 where the process did
// not listen to it yet.
func (p *process) term() int {
	p.t.Helper()
	p.Terminate()
	return p.wait()
}

// wait waits for the end and gives the exit status.
func (p *process) wait() int {
	p.t.Helper()
	p.Wait(p.t, patience)
	return p.Cmd.ProcessState.ExitCode()
}

// running says that the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.Exited:
		return false
	default:
		return true
	}
}

// tail is the end of the log.
func (p *process) tail() string {
	text := p.Log.String()
	return text[max(0, len(text)-6000):]
}

// says waits until the log holds all of some words in one line.
func (p *process) says(words ...string) string {
	p.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for line := range strings.Lines(p.Log.String()) {
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
