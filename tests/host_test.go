package tests

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
	"github.com/connect-windowed/connect-windowed/tests/machine"
)

// started starts countConfig, or other processors, in a form.
func started(t *testing.T, form drive.Form, setup drive.Setup) *drive.Pipe {
	t.Helper()
	if setup.Processors == nil {
		setup.Processors = countConfig()
	}
	p, err := drive.Start(form.Build(setup))
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

// waitRows waits for n final rows.
func waitRows(t *testing.T, p *drive.Pipe, n int) {
	t.Helper()
	require.True(t, p.Sink.Wait(p.Ended(), patience, func([]drive.Message) bool { return len(rowsOf(p)) >= n }),
		"%d rows, not %d\n%s", len(rowsOf(p)), n, p.Logs)
}

// Metadata that a message brings along is neither read as the product's own nor
// copied onto rows.
func TestForgedMetadata(t *testing.T) {
	for _, form := range drive.Forms() {
		t.Run(form.Name, func(t *testing.T) {
			p := started(t, form, drive.Setup{})
			for i, row := range []string{`{"k":"a","ts":1}`, `{"k":"a","ts":2}`, `{"k":"z","ts":11}`} {
				d := p.Feed.Send(func() service.MessageBatch {
					batch := batchOf(row)
					for key, value := range map[string]any{
						drive.MetaRowKey: `["x"]`, drive.MetaRowID: `["x",1]`, drive.MetaRevision: int64(9), drive.MetaTiming: "late",
						drive.MetaOperator: "other", drive.MetaEventTime: "2030-01-01T00:00:00Z", drive.MetaWatermark: "2030-01-01T00:00:00Z",
						drive.MetaLateOperator: "other", drive.MetaLateBy: "1s", drive.MetaStart: "x", drive.MetaEnd: "y",
					} {
						batch[0].MetaSetMut(key, value)
					}
					return batch
				}, nil)
				select {
				case <-d.Acked():
				case <-time.After(patience):
					require.Fail(t, "no acknowledgement", "row %d\n%s", i, p.Logs)
				}
			}
			waitRows(t, p, 1)
			require.NoError(t, p.Stop())
			rows := p.Sink.Messages()
			require.Len(t, rows, 1)
			require.NoError(t, rows[0].Err)
			require.JSONEq(t, `{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:10Z","k":"a","count":2}`, string(rows[0].Payload))
			require.NoError(t, drive.Window{Name: "tumbling_window", GroupBy: []string{"k"}}.CheckFinal(rows[0]), "%v", rows[0].Meta)
		})
	}
}

// An output that refuses gets every row in the end, and none twice that it has
// accepted; a natural end waits for that.
func TestRefusedRowsComeAgain(t *testing.T) {
	for name, refuse := range map[string]func(n *int) func(batch []drive.Message) []int{
		"whole batches": func(n *int) func([]drive.Message) []int {
			return func(batch []drive.Message) (no []int) {
				if *n++; *n%3 != 0 {
					for i := range batch {
						no = append(no, i)
					}
				}
				return no
			}
		},
		"single messages": func(n *int) func([]drive.Message) []int {
			return func(batch []drive.Message) (no []int) {
				for i := range batch {
					if *n++; *n%3 == 0 {
						no = append(no, i)
					}
				}
				return no
			}
		},
	} {
		for _, form := range drive.Forms() {
			t.Run(name+"/"+form.Name, func(t *testing.T) {
				p := started(t, form, drive.Setup{StateFile: t.TempDir() + "/state.db", Position: byPosition})
				n := 0
				p.Sink.Refuse(refuse(&n))
				for i := range 12 {
					p.Feed.Send(func() service.MessageBatch {
						return batchOf(fmt.Sprintf(`{"_p":"p0","_o":%d,"k":"a","ts":%d}`, 2*i, 10*i+1), fmt.Sprintf(`{"_p":"p0","_o":%d,"k":"b","ts":%d}`, 2*i+1, 10*i+2))
					}, nil)
				}
				p.Feed.End()
				require.NoError(t, p.WaitEnd(patience))
				require.Positive(t, p.Sink.Refused())
				ids := map[string]bool{}
				for _, m := range p.Sink.Messages() {
					if form.Settled { // what a batch let out comes again with all of it
						ids[m.Get(drive.MetaRowID)] = true
						continue
					}
					require.False(t, ids[m.Get(drive.MetaRowID)], "twice: %s", m.Get(drive.MetaRowID))
					ids[m.Get(drive.MetaRowID)] = true
				}
				require.Len(t, ids, 22)
				for _, row := range rowsOf(p) {
					require.Contains(t, row, `"count":1`)
				}
			})
		}
	}
}

// on_end: flush closes a copy: after a restart rows that change nothing give
// nothing, and a window that has grown gives the next revision.
func TestFlushThenMore(t *testing.T) {
	setup := drive.Setup{StateFile: t.TempDir() + "/state.db", OnEnd: "flush", Position: byPosition}
	life := func(rows ...string) []drive.Message {
		p := started(t, drive.InputHost, setup)
		for _, row := range rows {
			offer(t, p, row)
		}
		p.Feed.End()
		require.NoError(t, p.WaitEnd(patience))
		return p.Sink.Messages()
	}
	row := func(m drive.Message) string {
		return fmt.Sprintf("%s revision %s %s", m.Payload, m.Get(drive.MetaRevision), m.Get(drive.MetaTiming))
	}
	first := life(`{"_p":"p0","_o":0,"k":"a","ts":1}`, `{"_p":"p0","_o":1,"k":"b","ts":2}`)
	require.Len(t, first, 2)
	require.Contains(t, row(first[0]), `"k":"a","count":1} revision 1 on_time`)
	require.Equal(t, "1970-01-01T00:00:02Z", first[0].Get(drive.MetaWatermark), "W from before the flush")
	require.Empty(t, life(), "nothing has changed")

	grown := life(`{"_p":"p0","_o":2,"k":"a","ts":3}`)
	require.Len(t, grown, 1)
	require.Contains(t, row(grown[0]), `"k":"a","count":2} revision 2 late`)
	require.Equal(t, first[0].Get(drive.MetaRowKey), grown[0].Get(drive.MetaRowKey))
	require.NotEqual(t, first[0].Get(drive.MetaRowID), grown[0].Get(drive.MetaRowID))

	closed := life(`{"_p":"p0","_o":3,"k":"z","ts":15}`) // the ordinary close of [0, 10) changes nothing
	require.Len(t, closed, 1)
	require.Contains(t, row(closed[0]), `"k":"z","count":1} revision 1 on_time`)
}

// A close of many groups comes out whole, in batches of bounded size, in the order
// of (end, start).
func TestWideClose(t *testing.T) {
	const keys = 10_000
	for _, form := range drive.Forms() {
		t.Run(form.Name, func(t *testing.T) {
			p := started(t, form, drive.Setup{StateFile: t.TempDir() + "/state.db", Position: byPosition})
			largest := 0
			p.Sink.Refuse(func(batch []drive.Message) []int {
				largest = max(largest, len(batch))
				return nil
			})
			var rows []string
			for i := range keys {
				rows = append(rows, fmt.Sprintf(`{"_p":"p0","_o":%d,"k":"key %d","ts":%d}`, i, i, i%25))
			}
			slices.Reverse(rows)
			offer(t, p, rows...)
			offer(t, p, fmt.Sprintf(`{"_p":"p0","_o":%d,"k":"z","ts":1000}`, keys))
			waitRows(t, p, keys)
			require.NoError(t, p.Stop())
			require.LessOrEqual(t, largest, 1000, "rows in a batch")
			seen := map[string]bool{}
			last := int64(0)
			for _, m := range p.Sink.Messages() {
				var row struct{ K string }
				require.NoError(t, json.Unmarshal(m.Payload, &row))
				require.False(t, seen[row.K], row.K)
				seen[row.K] = true
				end, err := machine.ParseTime(m.Get(drive.MetaEnd))
				require.NoError(t, err)
				require.GreaterOrEqual(t, end, last, "rows come out by the end of their window")
				last = end
			}
			require.Len(t, seen, keys)
		})
	}
}
