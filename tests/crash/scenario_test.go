package crash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/crash/plugins"
	"github.com/connect-windowed/connect-windowed/tests/drive"
	"github.com/connect-windowed/connect-windowed/tests/machine"
	"github.com/connect-windowed/connect-windowed/tests/oracle"
	"github.com/connect-windowed/connect-windowed/tests/random"
)

// scenario is a stream, a place for the operators and a folder for everything
// that outlives the process.
type scenario struct {
	dir    string
	shape  random.Shape
	source string // the input, as YAML
	form   string
	pos    string // position: of the host, "" for its default
	refuse float64
	parts  string // partition settings of the watermark
	op     string // the operator, "" for the window
	budget string // memory_budget, "" for none
}

// orders is the shape of the streams of crash tests: every row is within the
// delay of its partition, so that no cut and no crash may change the answer.
func orders(seed uint64, rows, partitions int) random.Shape {
	return random.Shape{Seed: seed, Rows: rows, Partitions: partitions, Groups: 9, Delay: 20 * time.Second, Window: 10 * time.Second,
		Step: 2 * time.Second, Invalid: 0.03, Floats: true, Holes: partitions > 1, Origin: int64(1_760_000_000 * time.Second)}
}

// topic is a scenario whose source redelivers.
func topic(t testing.TB, form string, shape random.Shape, pause time.Duration) *scenario {
	s := &scenario{dir: t.TempDir(), form: form, shape: shape, parts: fmt.Sprintf(", partitions: %d", shape.Partitions)}
	s.source = sourceOf(s.dir, shape, pause)
	return s
}

func sourceOf(dir string, shape random.Shape, pause time.Duration) string {
	text, err := json.Marshal(shape)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("test_source: { dir: %q, shape: '%s', batch: 12, pause: %s }", dir, text, pause)
}

// halting is a scenario whose source halts after some batches until goOn, however slow
// the machine: the process cannot come to its end before the test has had its way.
func halting(t testing.TB, form string, shape random.Shape, batches int) *scenario {
	s := topic(t, form, shape, 0)
	s.source = strings.Replace(s.source, " }", fmt.Sprintf(", halt: %d }", batches), 1)
	require.Contains(t, s.source, ", halt: ")
	return s
}

// goOn lets a halted source go on, now and in further lives.
func (s *scenario) goOn(t testing.TB) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, plugins.GoFile), nil, 0o600))
}

// lines is a scenario whose source is two files that are read from the start each
// time.
func lines(t testing.TB, scanner string, shape random.Shape) *scenario {
	s := &scenario{dir: t.TempDir(), form: inputHost, shape: shape, pos: "ordinal"}
	events := shape.Events()[0]
	half := len(events) / 2
	writeLines(t, s.file(0), events[:half])
	writeLines(t, s.file(1), events[half:])
	s.source = fmt.Sprintf("file: { paths: [ %q, %q ], scanner: { %s } }", s.file(0), s.file(1), scanner)
	return s
}

func (s *scenario) file(i int) string { return filepath.Join(s.dir, fmt.Sprintf("part-%d.ndjson", i)) }

func writeLines(t testing.TB, path string, events []random.Event) {
	var text []byte
	for _, e := range events {
		text = append(append(text, plugins.Payload(e.Payload)...), '\n')
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
}

// The forms of a scenario.
const (
	inputHost     = "input windowed"
	processorHost = "processor windowed"
	standalone    = "operators"
)

const window = `tumbling_window: { %ssize: 10s, group_by: { k: this.k }, aggregates: { n: count(), values: count(this.v), sum: sum(this.v), min: min(this.v), max: max(this.v), avg: avg(this.v) } }`

// operator is what stands behind the watermark, with a place for fields of its own.
func (s *scenario) operator() string {
	if s.op != "" {
		return s.op
	}
	return window
}

// config writes the pipeline.
func (s *scenario) config() string {
	mark := `watermark: { %sevent_time: this.ts, unit: ms, delay: 20s` + s.parts + ` }`
	pos, own := "", ""
	if s.pos != "" {
		pos = "position: " + s.pos
		own = ", " + pos
	}
	if s.budget != "" {
		own += ", memory_budget: " + s.budget
		if pos += "\n"; s.form == inputHost {
			pos += "    memory_budget: " + s.budget
		} else {
			pos += "        memory_budget: " + s.budget
		}
	}
	var text string
	switch s.form {
	case inputHost:
		text = "input:\n  windowed:\n    state: state\n    " + pos + "\n    input:\n      " + s.source +
			"\n    processors:\n      - " + fmt.Sprintf(mark, "") + "\n      - " + fmt.Sprintf(s.operator(), "")
	case processorHost:
		text = "input:\n  " + s.source + "\npipeline:\n  threads: 1\n  processors:\n    - windowed:\n        state: state\n        " + pos +
			"\n        processors:\n          - " + fmt.Sprintf(mark, "") + "\n          - " + fmt.Sprintf(s.operator(), "")
	case standalone:
		own = "state: state" + own + ", "
		text = "input:\n  " + s.source + "\npipeline:\n  threads: 1\n  processors:\n    - " + fmt.Sprintf(mark, own) + "\n    - " + fmt.Sprintf(s.operator(), own)
	}
	return text + fmt.Sprintf(`
output:
  test_journal: { path: %q, refuse: %g }
cache_resources:
  - label: state
    bbolt: { path: %q }
http: { enabled: false }
logger: { level: DEBUG, format: logfmt }
shutdown_timeout: 20s
`, s.journal(), s.refuse, s.state())
}

func (s *scenario) journal() string { return filepath.Join(s.dir, "journal.ndjson") }
func (s *scenario) state() string   { return filepath.Join(s.dir, "state.db") }

// run starts a life.
func (s *scenario) run(t testing.TB, point string) *process {
	return run(t, s.dir, s.config(), point)
}

// spare is how many messages of each partition are left for the life after the last
// kill, where a form promises its answer only to a stream that goes on.
const spare = 25

// ending says that a partition has next to nothing left to send, for operators on
// their own. Their watermark is saved one batch late, so that a kill may take it back
// to before messages that are acknowledged: it is right again when the partition has
// sent something.
func (s *scenario) ending(t testing.TB) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, plugins.MarksFile))
	if s.form != standalone || os.IsNotExist(err) {
		return false
	}
	require.NoError(t, err)
	next := make([]int, s.shape.Partitions)
	for line := range strings.Lines(string(data)) {
		var p, n int
		if _, err := fmt.Sscanf(line, "%d %d.", &p, &n); err == nil {
			next[p] = n
		}
	}
	for p, events := range s.shape.Events() {
		if len(events)-next[p] < spare {
			return true
		}
	}
	return false
}

// finish lets a last life come to its natural end.
func (s *scenario) finish(t testing.TB) {
	t.Helper()
	p := s.run(t, "")
	require.Zero(t, p.wait(), "exit status\n%s", p.Log)
}

// entries reads the journal. A line without its end was not acknowledged.
func (s *scenario) entries(t testing.TB) (all []plugins.Entry) {
	t.Helper()
	data, err := os.ReadFile(s.journal())
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	for _, line := range bytes.SplitAfter(data, []byte("\n")) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue
		}
		line = line[max(bytes.LastIndex(line, []byte(`{"Payload":`)), 0):] // a life that was killed may have left a half before it
		var e plugins.Entry
		require.NoError(t, json.Unmarshal(line, &e), "%s", line)
		all = append(all, e)
	}
	return all
}

// verify compares the union of everything that came out of all lives, by row key
// and last revision, with the oracle, and what was passed on with what the stream
// holds of it.
func (s *scenario) verify(t testing.TB) {
	t.Helper()
	entries := s.entries(t)
	byID, last := map[string]string{}, map[string]plugins.Entry{}
	passed := map[string]bool{}
	for _, e := range entries {
		require.Empty(t, e.LateBy, "a row is late: %s", e.Payload)
		if e.RowKey == "" {
			require.NotEmpty(t, e.Err, "a row passed through every operator: %s", e.Payload)
		}
		if e.Err != "" { // an operator before the one that refused it may have given it a key
			passed[string(e.Payload)] = true
			continue
		}
		if before, seen := byID[e.RowID]; seen {
			require.Equal(t, before, string(e.Payload), "one row id, two rows: %s", e.RowID)
		}
		byID[e.RowID] = string(e.Payload)
		require.Equal(t, "1", e.Revision, "%s", e.RowID)
		last[e.RowKey] = e
	}
	s.compare(t, last, passed)
}

// compare compares the last row of each key, and what was passed on, with the
// answer.
func (s *scenario) compare(t testing.TB, last map[string]plugins.Entry, passed map[string]bool) {
	t.Helper()
	expected, invalid := s.answer()
	run := machine.Run{Unit: "ns", Expected: expected, Tol: 1e-12, Loose: "avg"}
	var got []machine.Got
	for _, e := range last {
		got = append(got, machine.Got{Payload: e.Payload})
	}
	if diff := run.Compare(got); diff != "" {
		lines := strings.Split(diff, "\n")
		slices.SortFunc(lines, func(a, b string) int {
			return strings.Compare(a[strings.Index(a, "{")+1:], b[strings.Index(b, "{")+1:])
		})
		diff = strings.Join(lines, "\n")
		require.Fail(t, "the union of the outputs is not the answer", "%d differences, seed %d:\n%.4000s", strings.Count(diff, "\n")+1, s.shape.Seed, diff)
	}
	require.Equal(t, invalid, passed, "messages passed on with an error")
}

// answer asks the oracle. The invalid messages are those of the whole stream.
func (s *scenario) answer() (rows []machine.Expected, invalid map[string]bool) {
	invalid = map[string]bool{}
	var all []random.Event
	var names []string
	for p, events := range s.shape.Events() {
		all = append(all, events...)
		names = append(names, fmt.Sprintf("p%d", p))
	}
	for _, e := range all {
		if e.Row.Invalid {
			invalid[string(plugins.Payload(e.Payload))] = true
		}
	}
	q := oracle.Query{Sources: []oracle.Source{{Delay: int64(s.shape.Delay), Partitions: names}}, Size: int64(s.shape.Window)}
	for _, r := range q.Answer(random.Rows([][]random.Event{all})).Results {
		rows = append(rows, drive.Expected(r))
	}
	return rows, invalid
}
