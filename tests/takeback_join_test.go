package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A null row that came out at the end of a file is taken back when the file has
// grown by a partner: a sink that upserts by row key ends with the pair alone.
func TestFlushedNullRowIsTakenBack(t *testing.T) {
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
      - watermark: { event_time: this.ts, delay: 100s, sources: { l: { when: this.s == "l" }, r: { when: this.s == "r" } } }
      - interval_join: { left: { source: l, key: this.k }, right: { source: r, key: this.k }, upper: 10s, type: left }
`, file), filepath.Join(dir, "state.db"))
	}
	const a, b = `{"s":"l","k":"a","ts":1}` + "\n", `{"s":"l","k":"b","ts":2}` + "\n"
	const partner = `{"s":"r","k":"a","ts":5}` + "\n"
	require.ElementsMatch(t, []string{`["interval_join",["a"],1,null] 1 on_time`, `["interval_join",["b"],2,null] 1 on_time`}, run(a+b))
	require.Empty(t, run(a+b), "the same file again")
	got := run(a + b + partner)
	require.Len(t, got, 2, "%v", got)
	require.Contains(t, got, `["interval_join",["a"],1,null] 2 delete`)
	require.Empty(t, run(a+b+partner))
}
