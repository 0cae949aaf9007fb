package processors_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// Lines that are handed over to the host come out as those that go the usual way do,
// with the same metadata and errors, in every mode of positions, read once and read
// again.
func TestLinesThatAreHandedOver(t *testing.T) {
	dir := t.TempDir()
	var lines strings.Builder
	for i := range 300 {
		switch {
		case i%50 == 7:
			fmt.Fprintf(&lines, "{\"o\":%d,\"k\":\"late\",\"ts\":1}\n", i)
		case i%50 == 9:
			lines.WriteString("no JSON\r\n")
		case i%50 == 11:
			lines.WriteString(strings.Repeat("long ", 100) + "\n")
		case i%50 == 13:
			fmt.Fprintf(&lines, "{\"o\":%d,\"k\":\"a\"}\n", i)
		default:
			fmt.Fprintf(&lines, "{\"o\":%d,\"k\":\"k%d\",\"ts\":%d}\n", i, i%7, 20+i)
		}
	}
	for _, name := range []string{"a.ndjson", "b.ndjson"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(lines.String()), 0o600))
	}
	const (
		seesPath = `{ watermark: { event_time: this.ts, partition: '@path' } }, { tumbling_window: { size: 10s, group_by: { k: this.k, path: '@path' }, aggregates: { n: count() }, late: pass } }`
		keeps    = `{ watermark: { event_time: this.ts } }, { watermark_dedupe: { key: this.k, within: 5s } }`
	)
	for chain, list := range map[string]string{"counting": counting, "seesPath": seesPath, "keeps": keeps} {
		for mode, position := range map[string]string{"ordinal": "position: ordinal", "offset": byOffset, "none": "position: none"} {
			t.Run(chain+"/"+mode, func(t *testing.T) {
				clean(t)
				usual := linesPipe(t, dir, list, position, "processors: [ { noop: {} } ]")
				for _, replay := range []string{"true", "false"} {
					require.Equal(t, usual, linesPipe(t, dir, list, position, "auto_replay_nacks: "+replay))
				}
			})
		}
	}
}

// linesPipe gives what comes out of a host over files, in a first life and, where
// positions are remembered, in a second one over the same state.
func linesPipe(t *testing.T, dir, list, position, option string) (all []drive.Message) {
	t.Helper()
	input := "file: { paths: [ " + filepath.Join(dir, "a.ndjson") + ", " + filepath.Join(dir, "b.ndjson") + " ], scanner: { lines_batch: { max_line_bytes: 100, max_batch_size: 20 } }"
	if strings.HasPrefix(option, "processors") {
		input += " }, " + option
	} else {
		input += ", " + option + " }"
	}
	conf := strings.Replace(hostInput(stateFile(t), list, position), "FEED", "{ "+input+" }", 1)
	lives := 1
	if position == "position: ordinal" {
		lives = 2
	}
	for range lives {
		p := pipe(t, conf)
		require.NoError(t, p.WaitEnd(patience))
		all = append(all, p.Sink.Messages()...)
		in, _ := p.Meter.Sum("windowed_rows_in")
		require.EqualValues(t, 600, in)
		received, _ := p.Meter.Sum("input_received")
		require.GreaterOrEqual(t, received, in, "what is handed over is counted")
	}
	return all
}
