package tests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// A session that came out at the end of a file grows when the file has grown. Its
// bounds are another row then: the old row is taken back, so that a sink that
// upserts by row key ends with one row and not with two.
func TestFlushedSessionThatGrowsIsTakenBack(t *testing.T) {
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
      - watermark: { event_time: this.ts, delay: 100s }
      - session_window: { gap: 10s, group_by: { k: this.k }, aggregates: { n: count() } }
`, file), filepath.Join(dir, "state.db"))
	}
	const a, b = `{"k":"a","ts":1}` + "\n", `{"k":"b","ts":2}` + "\n"
	old := `["session_window",["a"],"1970-01-01T00:00:01Z","1970-01-01T00:00:11Z"]`
	grown := `["session_window",["a"],"1970-01-01T00:00:01Z","1970-01-01T00:00:15Z"]`
	other := `["session_window",["b"],"1970-01-01T00:00:02Z","1970-01-01T00:00:12Z"]`

	require.ElementsMatch(t, []string{old + " 1 on_time", other + " 1 on_time"}, run(a+b))
	require.Empty(t, run(a+b), "the same file again")
	require.ElementsMatch(t, []string{grown + " 1 on_time", old + " 2 delete"}, run(a+b+`{"k":"a","ts":5}`+"\n"))
	require.Empty(t, run(a+b+`{"k":"a","ts":5}`+"\n"), "what was taken back is not taken back again")
}

// runToEnd runs an input to its natural end and gives key, revision and timing of
// the rows that came out.
func runToEnd(t *testing.T, input, state string) (rows []string) {
	t.Helper()
	b := service.NewStreamBuilder()
	require.NoError(t, b.SetYAML(input+fmt.Sprintf(`
cache_resources: [ { label: state, bbolt: { path: %q } } ]
logger: { level: NONE }
`, state)))
	var mu sync.Mutex // protects rows
	require.NoError(t, b.AddConsumerFunc(func(_ context.Context, m *service.Message) error {
		mu.Lock()
		defer mu.Unlock()
		text := func(key string) string { v, _ := m.MetaGet(key); return v }
		rows = append(rows, text(drive.MetaRowKey)+" "+text(drive.MetaRevision)+" "+text(drive.MetaTiming))
		return nil
	}))
	stream, err := b.Build()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, stream.Run(ctx))
	return rows
}
