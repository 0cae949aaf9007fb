package tests

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// twoFiles runs watermark and window on their own, each with a state file, so that
// a crash between the commit of one and the commit of the other can be played. A
// batch whose rows have a field wait is stuck between them for that long.
func twoFiles(t *testing.T, marks, windows string) *drive.Pipe {
	t.Helper()
	return listed(t, map[string]string{"marks": marks, "windows": windows},
		fields{"watermark": fields{"event_time": "this.ts", "delay": "0s", "partition": "this._p",
			"partitions": []string{"p0", "p1"}, "state": "marks", "position": byPosition}},
		fields{"sleep": fields{"duration": `${! this.wait | "0s" }`}},
		fields{"tumbling_window": fields{"size": "10s", "group_by": fields{"k": "this.k"},
			"aggregates": fields{"count": "count()"}, "state": "windows", "position": byPosition}})
}

// offer sends a batch and waits for its acknowledgement.
func offer(t *testing.T, p *drive.Pipe, rows ...string) {
	t.Helper()
	d := p.Feed.Send(func() service.MessageBatch { return batchOf(rows...) }, nil)
	select {
	case <-d.Acked():
	case <-time.After(patience):
		require.Fail(t, "no acknowledgement", p.Logs.String())
	}
}

// rowsOf gives the payloads of the final rows.
func rowsOf(p *drive.Pipe) (rows []string) {
	for _, m := range p.Sink.Messages() {
		if m.Get(drive.MetaRowKey) != "" {
			rows = append(rows, string(m.Payload))
		}
	}
	return rows
}

// A crash after the watermark's commit and before the window's: the rows in
// between come again, in other batches and behind newer rows of other partitions.
// None of them may be lost to a watermark that they themselves have moved.
func TestCrashBetweenTwoOperators(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	p := twoFiles(t, at("marks"), at("windows"))
	offer(t, p, `{"_p":"p0","_o":1,"k":"a","ts":1}`, `{"_p":"p1","_o":1,"k":"a","ts":2}`)
	require.NoError(t, drive.Snapshot(at("windows"), at("windows after the crash")))
	offer(t, p, `{"_p":"p0","_o":2,"k":"a","ts":25}`, `{"_p":"p1","_o":2,"k":"a","ts":9}`, `{"_p":"p1","_o":3,"k":"z","ts":26}`)
	require.NoError(t, drive.Snapshot(at("marks"), at("marks after the crash")))
	require.NoError(t, p.Stop())

	p = twoFiles(t, at("marks after the crash"), at("windows after the crash"))
	goOn(t, p)
	require.NoError(t, p.Stop())
	requireCounts(t, p)
}

// A stop by force, while the rows of a batch are between the watermark and the window,
// is like a crash there: the watermark may not remember them as through.
func TestForcedStopBetweenTwoOperators(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	p := twoFiles(t, at("marks"), at("windows"))
	offer(t, p, `{"_p":"p0","_o":1,"k":"a","ts":1}`, `{"_p":"p1","_o":1,"k":"a","ts":2}`)
	before, _ := p.Meter.Sum("windowed_commits")
	p.Feed.Send(func() service.MessageBatch {
		return batchOf(`{"_p":"p0","_o":2,"k":"a","ts":25,"wait":"1h"}`, `{"_p":"p1","_o":2,"k":"a","ts":9}`, `{"_p":"p1","_o":3,"k":"z","ts":26}`)
	}, nil)
	require.Eventually(t, func() bool { now, _ := p.Meter.Sum("windowed_commits"); return now == before+1 }, patience, time.Millisecond,
		"the watermark has committed and given the batch")
	_ = p.StopWithin(2 * time.Second) // what it says is Benthos' affair
	require.NoError(t, p.WaitEnd(patience))

	p = twoFiles(t, at("marks"), at("windows"))
	goOn(t, p)
	require.NoError(t, p.Stop())
	requireCounts(t, p)
}

// A graceful stop forgets nothing: a partition that has said its last is remembered.
func TestGracefulStopKeepsTheLastBatch(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	p := twoFiles(t, at("marks"), at("windows"))
	offer(t, p, `{"_p":"p0","_o":1,"k":"a","ts":1}`, `{"_p":"p1","_o":1,"k":"z","ts":100}`)
	require.NoError(t, p.Stop())
	require.Empty(t, rowsOf(p))
	p = twoFiles(t, at("marks"), at("windows"))
	offer(t, p, `{"_p":"p0","_o":2,"k":"z","ts":101}`)
	require.NoError(t, p.Stop())
	require.Len(t, rowsOf(p), 1)
}

// A durable watermark in another list than the operators behind it does not know when
// they are through: the log says so.
func TestWatermarkInAnotherList(t *testing.T) {
	for state, warns := range map[string]bool{"marks": true, "memory": false} {
		p, err := drive.Start(func(feed, sink map[string]any) map[string]any {
			feed["processors"] = []any{map[string]any{"watermark": map[string]any{"event_time": "this.ts", "delay": "0s", "state": state, "position": byPosition}}}
			return map[string]any{"input": feed, "output": sink,
				"cache_resources": []any{map[string]any{"label": "marks", "bbolt": map[string]any{"path": filepath.Join(t.TempDir(), "marks")}}},
				"pipeline": map[string]any{"threads": 1, "processors": []any{
					map[string]any{"tumbling_window": map[string]any{"size": "10s", "aggregates": map[string]any{"count": "count()"}, "position": byPosition}}}}}
		})
		require.NoError(t, err)
		offer(t, p, `{"_p":"p0","_o":1,"ts":1}`)
		offer(t, p, `{"_p":"p0","_o":2,"ts":11}`)
		require.NoError(t, p.Stop())
		require.Len(t, rowsOf(p), 1)
		require.Equal(t, warns, strings.Contains(p.Logs.String(), "stands in another list of processors"), "state %q\n%s", state, p.Logs)
	}
}

// goOn plays what comes again, in other batches and behind newer rows of other
// partitions, and what closes all windows.
func goOn(t *testing.T, p *drive.Pipe) {
	t.Helper()
	offer(t, p, `{"_p":"p0","_o":2,"k":"a","ts":25}`, `{"_p":"p0","_o":3,"k":"z","ts":29}`)
	offer(t, p, `{"_p":"p1","_o":2,"k":"a","ts":9}`)
	offer(t, p, `{"_p":"p1","_o":3,"k":"z","ts":26}`, `{"_p":"p0","_o":4,"k":"z","ts":50}`, `{"_p":"p1","_o":4,"k":"z","ts":50}`)
}

// requireCounts checks the rows of a run that ended with goOn.
func requireCounts(t *testing.T, p *drive.Pipe) {
	t.Helper()
	require.NotContains(t, p.Logs.String(), "another list of processors")
	got := map[string]json.Number{}
	for _, row := range rowsOf(p) {
		var r struct {
			K     string
			Start string `json:"window_start"`
			Count json.Number
		}
		require.NoError(t, json.Unmarshal([]byte(row), &r))
		require.NotContains(t, got, r.K+" "+r.Start)
		got[r.K+" "+r.Start] = r.Count
	}
	require.Equal(t, map[string]json.Number{"a 1970-01-01T00:00:00Z": "3", "a 1970-01-01T00:00:20Z": "1", "z 1970-01-01T00:00:20Z": "2"}, got)
}
