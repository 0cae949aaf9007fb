package processors_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// played runs the payloads, a batch each, through operators in a form, and gives
// what came out as text: the payload, some metadata and the error.
func played(t *testing.T, form drive.Form, processors []string, payloads ...string) (lines []string) {
	t.Helper()
	setup := drive.Setup{StateFile: stateFile(t), Position: json.RawMessage(`"none"`)}
	for _, p := range processors {
		setup.Processors = append(setup.Processors, json.RawMessage(p))
	}
	p, err := drive.Start(form.Build(setup))
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Stop() })
	for _, payload := range payloads {
		send(t, p, payload)
	}
	p.Feed.End()
	require.NoError(t, p.WaitEnd(patience))
	for _, m := range p.Sink.Messages() {
		line := string(m.Payload)
		for _, key := range []string{"windowed_row_key", "windowed_duplicate", "test_meta"} {
			if v := m.Get(key); v != "" {
				line += " " + v
			}
		}
		if m.Err != nil {
			line += " error: " + m.Err.Error()
		}
		lines = append(lines, line)
	}
	return lines
}

func everywhere(t *testing.T, test func(t *testing.T, form drive.Form)) {
	for _, form := range drive.Forms() {
		t.Run(form.Name, func(t *testing.T) { test(t, form) })
	}
}

const twoSources = `{"watermark": {"event_time": "this.ts", "delay": "60s", "sources": {
	"m": {"when": "this.s == \"m\""}, "l": {"when": "this.s == \"l\""}, "r": {"when": "this.s == \"r\""}}}}`

// Payloads keep their digits, and go onto one line. Rows of a third source pass.
func TestJoinKeepsPayloads(t *testing.T) {
	everywhere(t, func(t *testing.T, form drive.Form) {
		got := played(t, form, []string{twoSources, `{"interval_join": {"left": {"source": "l", "key": "this.k"}, "right": {"source": "r", "key": "this.k"}, "upper": "5s"}}`},
			`{"s":"l","ts":1,"k":[1,"a"],"n":12345678901234567890,"x":1.10}`,
			`{"s":"m","ts":1,"k":[1,"a"]}`,
			"{\"s\":\"r\",\n \"ts\":2, \"k\":[1.0,\"a\"], \"text\":\"two\\nlines\"}\n")
		require.Equal(t, []string{
			`{"s":"m","ts":1,"k":[1,"a"]}`,
			`{"left":{"s":"l","ts":1,"k":[1,"a"],"n":12345678901234567890,"x":1.10},"right":{"s":"r","ts":2,"k":[1.0,"a"],"text":"two\nlines"}} ["interval_join",[[1,"a"]],1,3]`,
		}, got)
	})
}

// A result mapping that fails leaves the row as it is, with the error; a key that
// fails concerns the rows of its side only.
func TestJoinResult(t *testing.T) {
	everywhere(t, func(t *testing.T, form drive.Form) {
		got := played(t, form, []string{twoSources, `{"interval_join": {"left": {"source": "l", "key": "this.k.uppercase()"}, "right": {"source": "r", "key": "this.id"}, "upper": "5s",
			"result": "{\"k\": this.left.k, \"sum\": this.left.v + this.right.v.not_null()}"}}`},
			`{"s":"l","ts":1,"k":"a","v":1}`, `{"s":"r","ts":1,"id":"A","v":2}`, `{"s":"r","ts":1,"id":"A","v":null}`, `{"s":"l","ts":1,"k":7}`)
		require.Len(t, got, 3)
		require.Equal(t, `{"k":"a","sum":3} ["interval_join",["A"],1,2]`, got[0])
		require.Contains(t, got[1], `{"left":{"s":"l","ts":1,"k":"a","v":1},"right":{"s":"r","ts":1,"id":"A","v":null}}`)
		require.Contains(t, got[1], "error: result: ")
		require.Contains(t, got[2], `{"s":"l","ts":1,"k":7} error: left.key: `)
	})
}

// What cannot stand inside of a JSON document is invalid, also where no expression
// has looked at it.
func TestJoinTakesJSONOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, form drive.Form) {
		got := played(t, form, []string{
			`{"mapping": "meta test_meta = content().string().slice(0, 1)\nroot = content()"}`,
			`{"watermark": {"event_time": "0", "sources": {"l": {"when": "@test_meta == \"l\""}, "r": {"when": "@test_meta != \"l\""}}}}`,
			`{"interval_join": {"left": {"source": "l", "key": "@test_meta"}, "right": {"source": "r", "key": "@test_meta"}, "upper": "5s", "type": "full"}}`},
			`left`, `[1]`)
		require.Len(t, got, 1)
		require.Contains(t, got[0], "left l error: the payload cannot be read")
	})
}

// A join on its own knows the sources from the messages, and says of each message
// what is wrong.
func TestJoinAloneOfAnUnknownSource(t *testing.T) {
	got := played(t, drive.Standalone, []string{twoSources, `{"interval_join": {"left": {"source": "left", "key": "this.k"}, "right": {"source": "r", "key": "this.k"}, "upper": "5s"}}`},
		`{"s":"l","ts":1,"k":"a"}`)
	require.Len(t, got, 1)
	require.Contains(t, got[0], `left.source: "left" is not known`)
	require.Contains(t, got[0], "use one of l, m, r")
}

// Duplicates that are passed on are marked and get into nothing behind.
func TestDuplicatesPass(t *testing.T) {
	everywhere(t, func(t *testing.T, form drive.Form) {
		got := played(t, form, []string{`{"watermark": {"event_time": "this.ts", "delay": "1s"}}`,
			`{"watermark_dedupe": {"name": "once", "key": "this.id", "within": "1h", "duplicates": "pass"}}`, `{"mapping": "root = this\nroot.seen = true"}`,
			`{"tumbling_window": {"size": "10s", "aggregates": {"n": "count()"}}}`},
			`{"id":1,"ts":1}`, `{"id":1,"ts":2}`, `{"id":2,"ts":3}`, `{"id":3,"ts":11}`)
		require.Equal(t, []string{
			`{"id":1,"seen":true,"ts":2} once`,
			`{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:10Z","n":2} ["tumbling_window",[],"1970-01-01T00:00:00Z","1970-01-01T00:00:10Z"]`,
		}, got)
	})
}

// The last row keeps payload and metadata while it waits, and its source: the
// deduplication stands between a watermark and a join in every form.
func TestDedupeKeepsLast(t *testing.T) {
	everywhere(t, func(t *testing.T, form drive.Form) {
		got := played(t, form, []string{`{"mapping": "root = this\nmeta test_meta = \"kept \" + this.n.string()"}`,
			`{"watermark": {"event_time": "this.ts", "sources": {"l": {"when": "this.s == \"l\""}, "r": {"when": "this.s == \"r\""}}}}`,
			`{"watermark_dedupe": {"key": "this.id", "within": "10s", "keep": "last"}}`},
			`{"s":"l","id":1,"ts":1,"n":1}`, `{"s":"l","id":1,"ts":5,"n":2}`, `{"s":"l","id":1,"ts":3,"n":3}`, `{"s":"r","id":2,"ts":11,"n":4}`, `{"s":"l","id":3,"ts":11,"n":5}`)
		require.Len(t, got, 1)
		require.Regexp(t, `^{"id":1,"n":2,"s":"l","ts":5} \["watermark_dedupe",\[1\],"1970-01-01T00:00:05Z",[0-9]+\] kept 2$`, got[0])

		got = played(t, form, []string{`{"watermark": {"event_time": "this.ts", "sources": {"l": {"when": "this.s == \"l\""}, "r": {"when": "this.s == \"r\""}}}}`,
			`{"watermark_dedupe": {"key": "this.id", "within": "1s", "keep": "last"}}`,
			`{"interval_join": {"left": {"source": "l", "key": "this.k"}, "right": {"source": "r", "key": "this.k"}, "upper": "5s"}}`},
			`{"s":"l","id":1,"k":"a","ts":1}`, `{"s":"r","id":2,"k":"a","ts":2}`, `{"s":"l","id":3,"k":"x","ts":5}`, `{"s":"r","id":4,"k":"y","ts":5}`)
		require.Len(t, got, 1, "%v", got)
		require.Contains(t, got[0], fmt.Sprintf(`{"left":%s,"right":%s}`, `{"s":"l","id":1,"k":"a","ts":1}`, `{"s":"r","id":2,"k":"a","ts":2}`))
	})
}
