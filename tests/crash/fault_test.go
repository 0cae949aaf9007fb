package crash

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/crash/plugins"
	"github.com/connect-windowed/connect-windowed/tests/life"
)

// requireFault lets the process end and looks for its report. What the journal
// held before must not have grown by rows of the wrong stream.
func (s *scenario) requireFault(t *testing.T, words ...string) {
	t.Helper()
	seen := map[string]string{}
	before := s.entries(t)
	for _, e := range before {
		seen[e.RowID] = string(e.Payload)
	}
	p := s.run(t, "")
	require.Equal(t, 1, p.wait(), "exit status\n%s", p.Log)
	for _, word := range words {
		require.Contains(t, p.Log.String(), word)
	}
	require.NotContains(t, p.Log.String(), "goroutine 1 [", "a raw panic")
	for _, e := range s.entries(t)[len(before):] {
		if e.RowKey != "" {
			require.Equal(t, seen[e.RowID], string(e.Payload), "a row that is not of the stream in state")
		}
	}
}

// A topic that was created again has the same positions and other payloads.
func TestTopicCreatedAgain(t *testing.T) {
	for _, form := range []string{inputHost, processorHost, standalone} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			shape := orders(life.Seed(t), 300, 4)
			s := topic(t, form, shape, 0)
			s.finish(t)
			s.verify(t)
			require.NoError(t, os.Remove(filepath.Join(s.dir, plugins.MarksFile)))
			again := shape
			again.Payload = 1
			s.source = sourceOf(s.dir, again, 0)
			s.requireFault(t, plugins.Topic)
			acknowledged, err := os.ReadFile(filepath.Join(s.dir, plugins.MarksFile))
			require.NoError(t, err)
			require.Equal(t, "open\n", string(acknowledged), "nothing may be acknowledged after the fault")
			s.requireFault(t, plugins.Topic) // and again, until somebody acts

			require.NoError(t, os.Remove(filepath.Join(s.dir, plugins.MarksFile)))
			s.source = sourceOf(s.dir, shape, 0)
			s.finish(t) // the old topic put back is one of the remedies
			s.verify(t)
		})
	}
}

// changes are what may happen to a file between two readings.
var changes = map[string]func(text string) string{
	"rewritten at the start": func(text string) string { return strings.Replace(text, `"id":`, `"ID":`, 1) },
	"rewritten at the end": func(text string) string {
		i := strings.LastIndex(text, `"id":`)
		return text[:i] + strings.Replace(text[i:], `"id":`, `"ID":`, 1)
	},
	"truncated by a line": func(text string) string {
		return text[:strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1]
	},
	"truncated to half": func(text string) string { return text[:strings.LastIndex(text[:len(text)/2], "\n")+1] },
}

// Files that are read from the start must begin with what was applied.
func TestFileChanged(t *testing.T) {
	for name, change := range changes {
		for i, which := range []string{"first file", "last file"} {
			t.Run(name+"/"+which, func(t *testing.T) {
				t.Parallel()
				s := lines(t, "lines_batch: {}", orders(life.Seed(t), 300, 1))
				s.finish(t)
				s.verify(t)
				text, err := os.ReadFile(s.file(i))
				require.NoError(t, err)
				write(t, s.file(i), change(string(text)))
				s.requireFault(t, s.file(i))
				write(t, s.file(i), string(text))
				s.finish(t)
				s.verify(t)
			})
		}
	}
}

// A processor sees neither the beginning nor the end of a file, nor which message
// comes a second time because an output refused it: it must not count them.
func TestOrdinalIsRefusedInProcessors(t *testing.T) {
	for _, form := range []string{processorHost, standalone} {
		s := lines(t, "lines_batch: {}", orders(1, 10, 1))
		s.form = form
		p := s.run(t, "")
		require.Equal(t, 1, p.wait(), "exit status\n%s", p.Log)
		requireClear(t, p)
		for _, word := range []string{"position", "ordinal", "input"} {
			require.Contains(t, p.Log.String(), word)
		}
		require.Empty(t, s.entries(t))
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// A file that has grown is read on from where it ended; a file that is gone is no
// fault.
func TestFileGrownOrGone(t *testing.T) {
	s := lines(t, "lines_batch: {}", orders(life.Seed(t), 400, 1))
	events := s.shape.Events()[0]
	half, part := len(events)/2, len(events)/2+70
	writeLines(t, s.file(1), events[half:part])
	s.finish(t)
	before := len(s.entries(t))
	s.finish(t)
	require.Len(t, s.entries(t), before, "nothing comes of a file that is read twice")
	writeLines(t, s.file(1), events[half:])
	s.finish(t)
	s.verify(t)

	write(t, s.file(1), "") // yields no message, so it looks as if it were gone
	s.finish(t)
	s.source = strings.Replace(s.source, strconv.Quote(s.file(0))+", ", "", 1)
	s.finish(t)
	s.verify(t)
}

// A kill while the process faults changes nothing: the next life reports again.
func TestKilledWhileFaulting(t *testing.T) {
	t.Parallel()
	s := lines(t, "lines_batch: {}", orders(life.Seed(t), 300, 1))
	s.finish(t)
	text, err := os.ReadFile(s.file(0))
	require.NoError(t, err)
	write(t, s.file(0), strings.Replace(string(text), `"id":`, `"ID":`, 1))
	for range 3 {
		p := s.run(t, "")
		p.ready()
		time.Sleep(5 * time.Millisecond)
		p.Kill()
	}
	s.requireFault(t, s.file(0))
}
