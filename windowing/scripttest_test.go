package windowing_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata/*.txt")

// TestScripts runs testdata/*.txt. A line is one of
//
//	stage KIND OPTIONS       a stage of the chain, see the makers of stages
//	event NAME=VALUE ...     a row; rows in consecutive lines are one batch.
//	                         ts is the event time, _source and _partition say where it is from
//	watermark SECONDS        a batch of heartbeats that moves W there; a stage in between takes them out
//	tick DURATION            time passes without a row
//	restart                  commit, then start again from the store
//	end                      the input ends, then everything closes as at the end of time
//	# ...                    a comment
//
// and lines that start with > are what the step before them puts out. Every
// script runs in every variant and gives the same; nothing of the operators is
// left in the store at the end.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			s := parseScript(t, string(data))
			if *update {
				s.play(t, variants()[0])
				require.NoError(t, os.WriteFile(file, []byte(s.text(t, variants()[0])), 0o644))
			}
			for _, v := range variants() {
				if v.memory > 0 && !s.bounded(t) {
					continue
				}
				t.Run(v.String(), func(t *testing.T) {
					require.Equal(t, string(data), s.text(t, v), "go test -run TestScripts -update rewrites it")
				})
			}
		})
	}
}

// fault is what happens at every commit.
type fault string

const (
	noFault      fault = "plain"
	restarts     fault = "restarts"      // start again from the store
	failedCommit fault = "failed_commit" // it fails, then the same write set is tried again
	lostCommit   fault = "lost_commit"   // a crash before it: start again and repeat what came after the last one
)

// variant is one way to run a script.
type variant struct {
	store  string
	fault  fault
	single bool  // one transaction for all steps, as far as restarts allow
	part   int   // results in a part of a close, 0: no bound worth speaking of
	memory int64 // bytes of state that stay in memory, 0: all of it
}

func (v variant) String() string {
	return fmt.Sprintf("%s,%s,single=%v,part=%d,memory=%d", v.store, v.fault, v.single, v.part, v.memory)
}

func variants() []variant {
	var all []variant
	for _, store := range storeNames {
		for _, memory := range []int64{0, 1} { // 1: everything leaves memory all the time
			for _, part := range []int{0, 1, 2} {
				for _, f := range []fault{noFault, restarts, failedCommit, lostCommit} {
					all = append(all, variant{store: store, fault: f, part: part, memory: memory})
				}
				all = append(all, variant{store: store, fault: noFault, single: true, part: part, memory: memory})
				all = append(all, variant{store: store, fault: failedCommit, single: true, part: part, memory: memory})
			}
		}
	}
	return all
}

// script is a parsed file.
type script struct {
	stages []command
	steps  []step
	lines  []string // without the expectations
}

// bounded says that a stage can do with less memory than its state takes.
func (s *script) bounded(t *testing.T) bool {
	return slices.ContainsFunc(makeStages(t, s.stages), func(st stage) bool {
		_, is := st.Operator.(windowing.Bounded)
		return is
	})
}

// step is one step of a script; its output stands behind the line.
type step struct {
	line     int
	commands []command // the rows of a batch, else one
}

// command is one line: a verb and NAME=VALUE pairs or words in their order.
type command struct {
	verb string
	args []arg
}

type arg struct{ name, value string }

// get is the value of a name, or the default.
func (c command) get(name, otherwise string) string {
	for _, a := range c.args {
		if a.name == name {
			return a.value
		}
	}
	return otherwise
}

func parseScript(t *testing.T, text string) *script {
	s := &script{}
	rows := false // the line before was a row
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, ">") {
			rows = false
			continue
		}
		s.lines = append(s.lines, line)
		at := len(s.lines) - 1
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			rows = false
			continue
		}
		c := parseCommand(t, line)
		switch {
		case c.verb == "stage":
			s.stages = append(s.stages, c)
		case c.verb == "event" && rows:
			last := &s.steps[len(s.steps)-1]
			last.line, last.commands = at, append(last.commands, c)
		default:
			s.steps = append(s.steps, step{line: at, commands: []command{c}})
		}
		rows = c.verb == "event"
	}
	require.NotEmpty(t, s.steps)
	require.Equal(t, "end", s.steps[len(s.steps)-1].commands[0].verb, "a script ends with `end`")
	return s
}

// parseCommand splits at blanks outside of quotes and brackets.
func parseCommand(t *testing.T, line string) command {
	var words []string
	depth, quoted, from := 0, false, -1
	for i, r := range line + " " {
		switch {
		case r == '"':
			quoted = !quoted
		case !quoted && strings.ContainsRune("([{", r):
			depth++
		case !quoted && strings.ContainsRune(")]}", r):
			depth--
		}
		blank := r == ' ' && !quoted && depth == 0
		if blank && from >= 0 {
			words, from = append(words, line[from:i]), -1
		} else if !blank && from < 0 {
			from = i
		}
	}
	require.NotEmpty(t, words, "unbalanced quotes or brackets: %s", line)
	c := command{verb: words[0]}
	for _, w := range words[1:] {
		name, value, found := strings.Cut(w, "=")
		if !found {
			name, value = "", w
		}
		c.args = append(c.args, arg{name: name, value: value})
	}
	return c
}

// text is the script with what it puts out in this variant.
func (s *script) text(t *testing.T, v variant) string {
	outputs := s.play(t, v)
	var b strings.Builder
	next := 0
	for i, line := range s.lines {
		b.WriteString(line + "\n")
		if next < len(s.steps) && s.steps[next].line == i {
			for _, out := range outputs[next] {
				b.WriteString("> " + out + "\n")
			}
			next++
		}
	}
	return b.String()
}

// play runs the script and gives the output of each step.
func (s *script) play(t *testing.T, v variant) [][]string {
	p := newPlayer(t, s, v)
	var outputs [][]string
	for _, st := range s.steps {
		outputs = append(outputs, p.step(st))
	}
	p.close()
	return outputs
}
