package tests

import (
	"encoding/json"
	"testing"

	"github.com/connect-windowed/connect-windowed/tests/drive"
	"github.com/connect-windowed/connect-windowed/tests/machine"
)

// rawRows makes rows of texts.
func rawRows(rows ...string) (list []json.RawMessage) {
	for _, row := range rows {
		list = append(list, json.RawMessage(row))
	}
	return list
}

// countConfig counts by key in windows of ten seconds.
func countConfig() []json.RawMessage {
	return rawRows(`{"watermark": {"event_time": "this.ts", "delay": "0s"}}`,
		`{"tumbling_window": {"size": "10s", "group_by": {"k": "this.k"}, "aggregates": {"count": "count()"}}}`)
}

// counted is a due row of countConfig in the window [0, 10).
func counted(after int, k, count string) machine.Expected {
	return machine.Expected{After: after, Spanned: true, Start: "0", End: "10", Fields: map[string]any{"k": k, "count": json.Number(count)}}
}

// byPosition reads positions from the payload.
var byPosition = json.RawMessage(`{"partition": "this._p", "offset": "this._o"}`)

// A message that was split into several has one position for all of them; a
// redelivery is recognised part by part, whatever its batch looks like.
func TestSplitMessagesAreCountedOnce(t *testing.T) {
	twice := []string{`{"_p":"p0","_o":7,"k":"a","ts":1}`, `{"_p":"p0","_o":7,"k":"a","ts":1}`}
	other := `{"_p":"p0","_o":6,"k":"b","ts":1}`
	last := `{"_p":"p0","_o":8,"k":"z","ts":11}`
	run := machine.Run{Name: "split", Unit: "s", Config: countConfig(), Position: byPosition, Clock: machine.DefaultClock, Exact: true, Times: true,
		Steps: []machine.Step{
			{IsBatch: true, Batch: rawRows(append([]string{other}, twice...)...)},
			{IsBatch: true, Batch: rawRows(twice...)},
			{Kill: true},
			{IsBatch: true, Batch: rawRows(append(twice[:2:2], other)...)},
			{Restart: true},
			{IsBatch: true, Batch: rawRows(append(twice[:2:2], last)...)},
		},
		Expected: []machine.Expected{counted(4, "a", "2"), counted(4, "b", "1")}}
	for _, form := range drive.Forms() {
		play := drive.Play{Run: run, Form: form, Encoding: drive.Lines, Durable: true}
		t.Run(play.Form.Name+"/"+play.Name(), func(t *testing.T) { checkPlay(t, play, play.Start(t)) })
	}
}

// A message with a value that an aggregate cannot take leaves with an error and is
// counted, wherever the operators stand and whatever stands before them.
func TestRefusedValuesAreCounted(t *testing.T) {
	errors, late := 1, 0
	run := machine.Run{Name: "refused value", Unit: "s", Clock: machine.DefaultClock, Exact: true, Times: true, Errors: &errors, Late: &late,
		Config: rawRows(`{"watermark": {"event_time": "this.ts", "delay": "0s"}}`,
			`{"tumbling_window": {"size": "10s", "group_by": {"k": "this.k"}, "aggregates": {"count": "count()", "sum": "sum(this.v)"}}}`),
		Steps: []machine.Step{
			{IsBatch: true, Batch: rawRows(`{"k":"a","ts":1,"v":1}`, `{"k":"a","ts":2,"v":"text"}`, `{"k":"a","ts":3,"v":2}`)},
			{IsBatch: true, Batch: rawRows(`{"k":"z","ts":11,"v":1}`)},
		},
		Expected: []machine.Expected{{After: 2, Spanned: true, Start: "0", End: "10", Fields: map[string]any{"k": "a", "count": json.Number("2"), "sum": json.Number("3")}}}}
	for _, form := range drive.Forms() {
		for _, encoding := range drive.Encodings() {
			play := drive.Play{Run: run, Form: form, Encoding: encoding}
			t.Run(play.Form.Name+"/"+play.Name(), func(t *testing.T) { checkPlay(t, play, play.Start(t)) })
		}
	}
}
