package tests

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// fields are those of a component.
type fields = map[string]any

// listed runs a list of processors on one thread, with a cache for each label of a file.
func listed(t *testing.T, files map[string]string, list ...any) *drive.Pipe {
	t.Helper()
	p, err := drive.Start(func(feed, sink map[string]any) map[string]any {
		var caches []any
		for label, path := range files {
			caches = append(caches, fields{"label": label, "bbolt": fields{"path": path}})
		}
		return fields{"input": feed, "output": sink, "cache_resources": caches, "pipeline": fields{"threads": 1, "processors": list}}
	})
	require.NoError(t, err)
	return p
}

// A message that cannot be placed stands last in the batch that closes a window. The rows
// of the window are logged under another one: they come again when an output refuses them.
func TestRowsOfABatchThatEndsWithABadMessage(t *testing.T) {
	for _, form := range drive.Forms() {
		t.Run(form.Name, func(t *testing.T) {
			p := started(t, form, drive.Setup{StateFile: t.TempDir() + "/state.db", Position: byPosition})
			done := false
			p.Sink.Refuse(func(batch []drive.Message) (no []int) {
				for i, m := range batch {
					if !done && m.Get(drive.MetaRowKey) != "" {
						no = append(no, i)
					}
				}
				done = done || no != nil
				return no
			})
			offer(t, p, `{"_p":"p0","_o":1,"k":"a","ts":1}`)
			offer(t, p, `{"_p":"p0","_o":2,"k":"z","ts":12}`, `no JSON`)
			if form.Settled {
				require.Len(t, rowsOf(p), 1, "all is acknowledged")
			}
			waitRows(t, p, 1)
			require.NoError(t, p.Stop())
			require.Equal(t, 1, p.Sink.Refused())
		})
	}
}

// An operator in memory counts its rows from one again after a restart. One behind it,
// whose state is durable, takes them neither for those from before nor for a fault; a
// message that only passes is known by its own position.
func TestDurableBehindMemory(t *testing.T) {
	for name, middle := range map[string][]any{
		"dedupe": {fields{"watermark_dedupe": fields{"key": "this.id", "within": "100s", "position": byPosition}}},
		"window": {fields{"tumbling_window": fields{"name": "first", "size": "1s", "group_by": fields{"k": "this.k"}, "aggregates": fields{"v": "count()"}, "position": byPosition}},
			fields{"watermark": fields{"name": "second", "delay": "0s", "position": byPosition}}},
	} {
		t.Run(name, func(t *testing.T) {
			list := append([]any{fields{"watermark": fields{"event_time": "this.ts", "delay": "0s", "position": byPosition}}}, middle...)
			list = append(list, fields{"tumbling_window": fields{"size": "10s", "group_by": fields{"k": "this.k"}, "aggregates": fields{"count": "count()"}, "state": "windows", "position": byPosition}})
			files := map[string]string{"windows": filepath.Join(t.TempDir(), "windows")}
			p := listed(t, files, list...)
			offer(t, p, `{"_p":"p0","_o":1,"k":"a","id":1,"ts":1}`, `{"_p":"p0","_o":2,"k":"a","id":2,"ts":2}`)
			offer(t, p, `{"_p":"p0","_o":3,"k":"a","id":3,"ts":3}`)
			require.NoError(t, p.Stop())
			require.Empty(t, rowsOf(p))
			p = listed(t, files, list...)
			offer(t, p, `{"_p":"p0","_o":3,"k":"a","id":3,"ts":3}`, `{"_p":"p0","_o":4,"k":"a","id":4,"ts":4}`, `{"_p":"p0","_o":5,"k":"a","id":5,"ts":5}`)
			offer(t, p, `{"_p":"p0","_o":6,"k":"a","id":6,"ts":16}`)
			offer(t, p, `{"_p":"p0","_o":7,"k":"a","id":7,"ts":27}`)
			require.NoError(t, p.Stop())
			require.NotEmpty(t, rowsOf(p))
			require.Contains(t, rowsOf(p)[0], `"count":5}`)
		})
	}
}

// A message that was split into more rows than a batch holds on its way between operators
// is one message there too.
func TestSplitIntoMoreThanABatch(t *testing.T) {
	for _, form := range drive.Forms() {
		for name, setup := range map[string]drive.Setup{"memory": {}, "file": {StateFile: t.TempDir() + "/state.db"}} {
			t.Run(form.Name+"/"+name, func(t *testing.T) {
				setup.Position = byPosition
				p := started(t, form, setup)
				const n = 2500
				var rows []string
				for i := range n {
					rows = append(rows, fmt.Sprintf(`{"_p":"p0","_o":1,"k":"a","ts":1,"i":%d}`, i))
				}
				offer(t, p, rows...)
				offer(t, p, rows...)
				offer(t, p, `{"_p":"p0","_o":2,"k":"z","ts":12}`)
				waitRows(t, p, 1)
				require.NoError(t, p.Stop())
				require.Contains(t, rowsOf(p)[0], fmt.Sprintf(`"count":%d}`, n))
			})
		}
	}
}

// The same for messages that no operator takes in: they are at one position behind each
// of the operators that they pass.
func TestInvalidRowsOfOneMessage(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	p := listed(t, map[string]string{"marks": at("marks"), "seen": at("seen"), "windows": at("windows")},
		fields{"watermark": fields{"event_time": "this.ts", "delay": "0s", "state": "marks", "position": byPosition}},
		fields{"watermark_dedupe": fields{"key": "this.i", "within": "100s", "state": "seen", "position": byPosition}},
		fields{"tumbling_window": fields{"size": "10s", "group_by": fields{"k": "this.k"}, "aggregates": fields{"count": "count()"}, "state": "windows", "position": byPosition}})
	const n = 2500
	var rows []string
	for i := range n {
		rows = append(rows, fmt.Sprintf(`{"_p":"p0","_o":1,"k":"a","i":%d}`, i))
	}
	offer(t, p, rows...)
	offer(t, p, rows...)
	require.NoError(t, p.Stop())
	require.Len(t, p.Sink.Messages(), 2*n)
}
