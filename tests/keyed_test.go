package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/machine"
)

// wallTimers count in seconds after 1769076000, where the clock starts.
const wallTimers = `{"case": "timers of the wall clock", "unit": "s", "runs": [
	{"name": "time passes", "clock": 1769076000, "config": %[1]s, "steps": [
		{"batch": [{"k": "a", "ts": 10, "after": 30}, {"k": "b", "ts": 10, "after": 20}]},
		{"tick": "19s"}, {"tick": "1s"}, {"restart": true}, {"tick": "9s"}, {"tick": "1s"}],
	 "expected": [{"step": 3, "k": "b", "at": 20}, {"step": 6, "k": "a", "at": 30}]},
	{"name": "the next batch", "clock": 1769076000, "config": %[1]s, "steps": [
		{"batch": [{"k": "a", "ts": 10, "after": 0}, {"k": "b", "ts": 10, "after": 1000}]},
		{"batch": [{"k": "b", "ts": 10, "after": -5}]}],
	 "expected": [{"after": 1, "k": "a", "at": 0}, {"after": 2, "k": "b", "at": -5}]}
]}`

const wallConfig = `[{"watermark": {"event_time": "this.ts"}}, {"keyed_state": {"key": "this.k",
	"on_event": "root.timers = [ { \"name\": \"t\", \"at\": 1769076000 + this.event.after, \"processing\": true } ]",
	"on_timer": "root.emit = [ { \"k\": this.key, \"at\": this.timer.at - 1769076000 } ]"}}]`

// Timers of the wall clock fire in silence in the input host, and with the next batch
// in every form.
func TestTimersOfTheWallClock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "case.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, wallTimers, wallConfig), 0o600))
	runs, err := machine.LoadCase(file)
	require.NoError(t, err)
	for _, run := range runs {
		t.Run(run.Name, func(t *testing.T) { playAll(t, run) })
	}
}

// A timer that an end of the input fired before its time comes out once: when the
// file has grown, and it fires or fires before its time again, it is the same row.
// One that was put off since is taken back.
func TestFlushedTimers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "in.ndjson")
	run := func(content string) []string {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		return runToEnd(t, fmt.Sprintf(`
input:
  windowed:
    state: state
    position: ordinal
    on_end: flush
    input: { file: { paths: [ %q ], scanner: { lines: {} } } }
    processors:
      - watermark: { event_time: this.ts }
      - keyed_state:
          key: this.k
          on_event: |
            root.state = (this.state | 0) + 1
            root.timers = [ { "name": "quiet", "at": this.event_time + 10 } ]
          on_timer: |
            root.emit = [ { "k": this.key, "n": this.state, "at": this.timer.at } ]
            root.state = null
`, file), filepath.Join(dir, "state.db"))
	}
	const a, b, later = `{"k":"a","ts":1}` + "\n", `{"k":"b","ts":2}` + "\n", `{"k":"a","ts":5}` + "\n"
	require.Equal(t, []string{`["keyed_state",["a"],2,0] 1 on_time`, `["keyed_state",["b"],4,0] 1 on_time`}, run(a+b))
	require.Empty(t, run(a+b), "the same file again")
	require.ElementsMatch(t, []string{`["keyed_state",["a"],6,0] 1 on_time`, `["keyed_state",["a"],2,0] 2 delete`}, run(a+b+later), "a was put off")
	const end = `{"k":"c","ts":12}` + "\n"
	require.Equal(t, []string{`["keyed_state",["c"],8,0] 1 on_time`}, run(a+b+later+end), "b fires, and was there")
	require.Empty(t, run(a+b+later+end))
}
