package tests

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
	"github.com/connect-windowed/connect-windowed/tests/machine"
)

// The product's metrics.
const (
	rowsIn      = "windowed_rows_in"
	lateRows    = "windowed_late_rows"
	invalidRows = "windowed_invalid_rows"
	duplicates  = "windowed_duplicate_rows"
	rowsEmitted = "windowed_rows_emitted"
	watermarkMS = "windowed_watermark_ms"
	lagMS       = "windowed_watermark_lag_ms"
	openWindows = "windowed_open_windows"
	groups      = "windowed_groups"
	stateBytes  = "windowed_state_bytes"
	commits     = "windowed_commits"
	commitTime  = "windowed_commit_ns"
	outboxRows  = "windowed_outbox_rows"
	redelivered = "windowed_redelivered_rows"
)

// sumOf adds a counter over all starts of a play.
func sumOf(out drive.Outcome, name string) (sum int64) {
	for _, m := range out.Meters {
		n, _ := m.Sum(name)
		sum += n
	}
	return sum
}

// checkCounters compares the product's counters with what the run expects and
// with what came out.
func checkCounters(t *testing.T, play drive.Play, out drive.Outcome) {
	t.Helper()
	run := play.Run
	if run.Late != nil {
		require.EqualValues(t, *run.Late, sumOf(out, lateRows), lateRows)
	}
	if run.Errors != nil {
		invalid := sumOf(out, invalidRows)
		if play.Form.Alone { // each operator counts what arrives with an error
			invalid = 0
			for _, m := range out.Meters {
				invalid += m.Largest(invalidRows)
			}
		}
		require.EqualValues(t, *run.Errors+out.Flagged, invalid, invalidRows)
	}
	if run.Duplicates != nil {
		require.EqualValues(t, *run.Duplicates, sumOf(out, duplicates), duplicates)
	}
	if !kills(run) && run.OnEnd == "" && !chained(run) {
		require.EqualValues(t, len(out.Rows), sumOf(out, rowsEmitted), rowsEmitted)
	}
}

// chained says that rows of one operator go into another, and are counted twice.
func chained(run machine.Run) bool {
	operators := 0
	for _, kind := range drive.Kinds(run.Config) {
		if strings.HasSuffix(kind, "_window") || kind == "interval_join" || kind == "watermark_dedupe" {
			operators++
		}
	}
	return operators > 1
}

func kills(run machine.Run) bool {
	for _, s := range run.Steps {
		if s.Kill || s.KillBeforeAck {
			return true
		}
	}
	return false
}

// The gauges of a host follow its state within seconds.
func TestGauges(t *testing.T) {
	state := t.TempDir() + "/state.db"
	setup := drive.Setup{StateFile: state, Processors: countConfig(), Position: byPosition}
	p, err := drive.Start(drive.InputHost.Build(setup))
	require.NoError(t, err)
	offer(t, p, `{"_p":"p0","_o":1,"k":"a","ts":1}`, `{"_p":"p0","_o":2,"k":"b","ts":1}`, `{"_p":"p0","_o":3,"k":"a","ts":12.5}`)
	offer(t, p, `{"_p":"p0","_o":2,"k":"b","ts":1}`)
	want := map[string]int64{rowsIn: 4, rowsEmitted: 2, redelivered: 1, watermarkMS: 12_500, openWindows: 1, groups: 1, outboxRows: 0}
	require.Eventually(t, func() bool {
		for name, value := range want {
			if got, found := p.Meter.Sum(name); !found || got != value {
				return false
			}
		}
		return len(p.Sink.Messages()) == 2
	}, patience, 10*time.Millisecond, "want %v", want)
	for _, name := range []string{stateBytes, commits, commitTime, lagMS} {
		value, found := p.Meter.Sum(name)
		require.True(t, found, name)
		require.Positive(t, value, name)
	}
	require.NoError(t, p.Stop())
}

// batchOf makes messages of payloads.
func batchOf(payloads ...string) service.MessageBatch {
	batch := service.MessageBatch{}
	for _, p := range payloads {
		batch = append(batch, drive.Lines.Message(json.RawMessage(p)))
	}
	return batch
}

// Invalid rows count for the operator in which they failed, whatever the form. One on
// its own also counts what reaches it with an error.
func TestInvalidRowsByOperator(t *testing.T) {
	for _, form := range drive.Forms() {
		t.Run(form.Name, func(t *testing.T) {
			setup := drive.Setup{Position: byPosition, Processors: rawRows(`{"watermark": {"event_time": "this.ts", "delay": "0s"}}`,
				`{"tumbling_window": {"name": "sums", "size": "10s", "aggregates": {"sum": "sum(this.v)"}}}`)}
			p := started(t, form, setup)
			offer(t, p, `{"_p":"p0","_o":1,"ts":"x","v":1}`, `{"_p":"p0","_o":2,"ts":1,"v":"x"}`, `{"_p":"p0","_o":3,"ts":2,"v":"x"}`)
			require.NoError(t, p.Stop())
			want := map[string]int64{"watermark": 1, "sums": 2, "": 0}
			if form.Alone {
				want["sums"] = 3
			}
			for operator, n := range want {
				got, _ := p.Meter.Sum(invalidRows, "operator="+operator)
				require.Equal(t, n, got, "%q of %v", operator, p.Meter.All())
			}
		})
	}
}
