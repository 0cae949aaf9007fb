package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// windowed is a stream of two events in a file through a window into another file.
func windowed(t *testing.T, window string, times ...string) (config, output string) {
	t.Helper()
	dir := t.TempDir()
	input, output := filepath.Join(dir, "in.ndjson"), filepath.Join(dir, "out.ndjson")
	var lines strings.Builder
	for _, at := range times {
		fmt.Fprintf(&lines, "{\"ts\":%q}\n", at)
	}
	require.NoError(t, os.WriteFile(input, []byte(lines.String()), 0o600))
	return writeConfig(t, settings+fmt.Sprintf(`
input:
  windowed:
    state: state
    position: ordinal
    on_end: flush
    input: { file: { paths: [ %q ], scanner: { lines: {} } } }
    processors: [ { watermark: { event_time: this.ts } }, { %s } ]
output: { file: { path: %q, codec: lines } }
cache_resources: [ { label: state, bbolt: { path: %q } } ]
`, input, window, output, filepath.Join(dir, "state.db"))), output
}

func rowsIn(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return strings.Count(string(data), "\n")
}

// A row in too many windows is refused by lint and at the start; one in as many as
// there may be comes out in all of them.
func TestTinySlides(t *testing.T) {
	const window = `sliding_window: { size: %s, slide: 1ms, aggregates: { n: count() } }`
	config, _ := windowed(t, fmt.Sprintf(window, "1h"), "2026-03-02T09:00:00Z")
	for _, line := range []string{"lint FILE", "run FILE"} {
		start := time.Now()
		code, _ := runLine(t, line, config)
		require.Equal(t, 1, code, line)
		require.Less(t, time.Since(start), 20*time.Second, line)
	}
	config, output := windowed(t, fmt.Sprintf(window, "20s"), "2026-03-02T09:00:00Z")
	for _, line := range []string{"lint FILE", "run FILE"} {
		code, _ := runLine(t, line, config)
		require.Zero(t, code, line)
	}
	require.Equal(t, 20_000, rowsIn(t, output))
}

// Two events decades apart are a matter of two windows, whatever lies between.
func TestEventsDecadesApart(t *testing.T) {
	for window, rows := range map[string]int{
		`tumbling_window: { size: 1s, aggregates: { n: count() } }`:                                  2,
		`tumbling_window: { size: 1s, early: 1s, allowed_lateness: 1m, aggregates: { n: count() } }`: 2,
		`tumbling_window: { size: 1s, fill: zero, fill_for: 10s, aggregates: { n: count() } }`:       22,
		`tumbling_window: { size: 1d, timezone: Europe/Paris, aggregates: { n: count() } }`:          2,
		`sliding_window: { size: 10s, slide: 1s, aggregates: { n: count() } }`:                       20,
		`cumulative_window: { size: 1d, step: 6h, aggregates: { n: count() } }`:                      8,
		`session_window: { gap: 1s, aggregates: { n: count() } }`:                                    2,
	} {
		config, output := windowed(t, window, "1970-01-01T00:00:00Z", "2040-12-31T00:00:00Z")
		start := time.Now()
		code, _ := runLine(t, "run FILE", config)
		require.Zero(t, code, window)
		require.Less(t, time.Since(start), 20*time.Second, window)
		require.Equal(t, rows, rowsIn(t, output), window)
	}
}
