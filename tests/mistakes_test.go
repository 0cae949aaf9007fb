package tests

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

const (
	goodWatermark = `{"watermark": {"event_time": "this.ts", "delay": "0s"}}`
	goodWindow    = `{"tumbling_window": {"size": "10s", "aggregates": {"n": "count()"}}}`
)

// mistakes are processors that a host refuses, with words of the message: the
// field, the value, the remedy or what is allowed.
var mistakes = []struct {
	name  string
	list  []string
	words []string
}{
	{"no watermark", []string{goodWindow}, []string{"tumbling_window", "watermark"}},
	{"watermark behind the window", []string{goodWindow, goodWatermark}, []string{"tumbling_window", "watermark"}},
	{"no event time", []string{`{"watermark": {"delay": "0s"}}`, goodWindow}, []string{"event_time"}},
	{"size zero", []string{goodWatermark, `{"tumbling_window": {"size": "0s", "aggregates": {"n": "count()"}}}`}, []string{"size", "0s"}},
	{"size negative", []string{goodWatermark, `{"tumbling_window": {"size": "-10s", "aggregates": {"n": "count()"}}}`}, []string{"size", "-10s"}},
	{"size no duration", []string{goodWatermark, `{"tumbling_window": {"size": "ten", "aggregates": {"n": "count()"}}}`}, []string{"size", "ten"}},
	{"delay negative", []string{`{"watermark": {"event_time": "this.ts", "delay": "-1s"}}`, goodWindow}, []string{"delay", "-1s"}},
	{"idle_timeout negative", []string{`{"watermark": {"event_time": "this.ts", "delay": "0s", "idle_timeout": "-1s"}}`, goodWindow}, []string{"idle_timeout", "-1s"}},
	{"max_ahead negative", []string{`{"watermark": {"event_time": "this.ts", "delay": "0s", "max_ahead": "-1s"}}`, goodWindow}, []string{"max_ahead", "-1s"}},
	{"unknown unit", []string{`{"watermark": {"event_time": "this.ts", "delay": "0s", "unit": "min"}}`, goodWindow}, []string{"unit", "min", "ms"}},
	{"unknown policy", []string{`{"watermark": {"event_time": "this.ts", "delay": "0s", "policy": "avg"}}`, goodWindow}, []string{"policy", "avg", "min", "max"}},
	{"unknown function", []string{goodWatermark, `{"tumbling_window": {"size": "10s", "aggregates": {"n": "summ(this.v)"}}}`}, []string{"summ", "sum"}},
	{"no argument", []string{goodWatermark, `{"tumbling_window": {"size": "10s", "aggregates": {"n": "sum()"}}}`}, []string{"sum"}},
	{"bad expression", []string{goodWatermark, `{"tumbling_window": {"size": "10s", "group_by": {"k": "this.("}, "aggregates": {"n": "count()"}}}`}, []string{"group_by", "this.("}},
	{"bad event time", []string{`{"watermark": {"event_time": "this.(", "delay": "0s"}}`, goodWindow}, []string{"event_time"}},
	{"output field twice", []string{goodWatermark, `{"tumbling_window": {"size": "10s", "group_by": {"k": "this.k"}, "aggregates": {"k": "count()"}}}`}, []string{`k`, "group_by"}},
	{"output field taken", []string{goodWatermark, `{"tumbling_window": {"size": "10s", "group_by": {"window_start": "this.k"}, "aggregates": {"n": "count()"}}}`}, []string{"window_start"}},
	{"one name twice", []string{`{"watermark": {"name": "x", "event_time": "this.ts", "delay": "0s"}}`, `{"tumbling_window": {"name": "x", "size": "10s", "aggregates": {"n": "count()"}}}`}, []string{"x", "name"}},
	{"state of its own", []string{goodWatermark, `{"tumbling_window": {"state": "memory", "size": "10s", "aggregates": {"n": "count()"}}}`}, []string{"state"}},
	{"position of its own", []string{`{"watermark": {"event_time": "this.ts", "delay": "0s", "position": "none"}}`, goodWindow}, []string{"position"}},
	{"nested in try", []string{goodWatermark, `{"try": [` + goodWindow + `]}`}, []string{"tumbling_window", "nested"}},
	{"nested in switch", []string{goodWatermark, `{"switch": [{"processors": [` + goodWindow + `]}]}`}, []string{"tumbling_window"}},
	{"nested in branch", []string{goodWatermark, `{"branch": {"processors": [` + goodWindow + `]}}`}, []string{"tumbling_window"}},
	{"a host in a host", []string{goodWatermark, `{"windowed": {"state": "memory", "processors": [` + goodWatermark + `]}}`}, []string{"windowed"}},
	{"late of another kind", []string{goodWatermark, `{"tumbling_window": {"size": "10s", "late": "keep", "aggregates": {"n": "count()"}}}`}, []string{"late", "keep", "drop", "pass"}},
	{"source without a name it may have", []string{`{"watermark": {"sources": {"a": {"event_time": "this.ts", "delay": "0s"}}}}`, goodWindow}, []string{"when"}},
}

func TestMistakesAreRefused(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			p, err := drive.Start(drive.InputHost.Build(drive.Setup{Processors: rawRows(m.list...)}))
			if err == nil {
				require.NoError(t, p.Stop())
			}
			require.Error(t, err)
			message, _, _ := strings.Cut(err.Error(), "\n{") // behind it stands the configuration
			for _, word := range m.words {
				require.Contains(t, message, word)
			}
		})
	}
}

// The words that a host has for its own fields.
func TestMistakesOfAHost(t *testing.T) {
	for name, test := range map[string]struct {
		change func(conf map[string]any)
		words  []string
	}{
		"no such cache": {func(conf map[string]any) { hostOf(conf)["state"] = "nowhere" }, []string{"state", "nowhere", "cache_resources"}},
		"another cache": {func(conf map[string]any) {
			hostOf(conf)["state"] = "other"
			conf["cache_resources"] = []any{map[string]any{"label": "other", "memory": map[string]any{}}}
		}, []string{"state", "other", "bbolt"}},
		"a cache labelled memory": {func(conf map[string]any) {
			conf["cache_resources"] = []any{map[string]any{"label": "memory", "memory": map[string]any{}}}
		}, []string{"memory", "label"}},
		"a position in a word":      {func(conf map[string]any) { hostOf(conf)["position"] = "latest" }, []string{"position", "latest", "none"}},
		"a position without offset": {func(conf map[string]any) { hostOf(conf)["position"] = map[string]any{"partition": "this.p"} }, []string{"offset"}},
		"an end in a word":          {func(conf map[string]any) { hostOf(conf)["on_end"] = "drop" }, []string{"on_end", "drop", "keep", "flush"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := drive.Start(func(feed, sink map[string]any) map[string]any {
				conf := drive.InputHost.Build(drive.Setup{Processors: countConfig()})(feed, sink)
				test.change(conf)
				return conf
			})
			if err == nil {
				require.NoError(t, p.Stop())
			}
			require.Error(t, err)
			message, _, _ := strings.Cut(err.Error(), "\n{")
			for _, word := range test.words {
				require.Contains(t, message, word)
			}
		})
	}
}

func hostOf(conf map[string]any) map[string]any {
	return conf["input"].(map[string]any)["windowed"].(map[string]any)
}

// What an operator on its own cannot see before it runs is an error on the
// messages, which names the remedy.
func TestOperatorWithoutWatermark(t *testing.T) {
	p := started(t, drive.Standalone, drive.Setup{Processors: rawRows(goodWindow)})
	offer(t, p, `{"k":"a","ts":1}`)
	offer(t, p, `{"k":"a","ts":11}`)
	require.NoError(t, p.Stop())
	messages := p.Sink.Messages()
	require.Len(t, messages, 2)
	for _, m := range messages {
		require.ErrorContains(t, m.Err, "watermark")
	}
}

// With durable state in a processor a message without a position could be lost, so
// it leaves with an error, unless the loss is accepted.
func TestMessagesWithoutPosition(t *testing.T) {
	for _, form := range []drive.Form{drive.ProcessorHost, drive.Standalone, drive.StandaloneInput} {
		t.Run(form.Name, func(t *testing.T) {
			conf := form.Build(drive.Setup{Processors: countConfig(), StateFile: t.TempDir() + "/state.db"})
			p, err := drive.Start(func(feed, sink map[string]any) map[string]any {
				data, err := json.Marshal(conf(feed, sink))
				require.NoError(t, err)
				var plain map[string]any
				require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(strings.ReplaceAll(string(data), `"position":"none",`, ""), `,"position":"none"`, "")), &plain))
				return plain
			})
			require.NoError(t, err)
			offer(t, p, `{"k":"a","ts":1}`, `{"k":"a","ts":2}`)
			offer(t, p, `{"k":"z","ts":11}`)
			require.NoError(t, p.Stop())
			messages := p.Sink.Messages()
			require.Len(t, messages, 3)
			for _, m := range messages {
				require.Error(t, m.Err)
				require.Contains(t, m.Err.Error(), "position")
				require.Contains(t, m.Err.Error(), "none")
			}
		})
	}
}

// Without positions the input host says once what that means.
func TestWarningWithoutPositions(t *testing.T) {
	p := started(t, drive.InputHost, drive.Setup{StateFile: t.TempDir() + "/state.db"})
	for range 5 {
		offer(t, p, `{"k":"a","ts":1}`)
	}
	require.NoError(t, p.Stop())
	require.Equal(t, 1, strings.Count(p.Logs.String(), "have no position"), "%s", p.Logs)
}

// An operator may stand on its own inside a case of a switch.
func TestOperatorsInASwitchCase(t *testing.T) {
	p, err := drive.Start(func(feed, sink map[string]any) map[string]any {
		return map[string]any{"input": feed, "output": sink, "pipeline": map[string]any{"threads": 1, "processors": []any{
			map[string]any{"mapping": "root = if this.drop.or(false) { deleted() }"},
			map[string]any{"switch": []any{
				map[string]any{"check": `this.k == "a"`, "processors": []any{
					map[string]any{"watermark": map[string]any{"event_time": "this.ts", "delay": "0s"}},
					map[string]any{"tumbling_window": map[string]any{"size": "10s", "group_by": map[string]any{"k": "this.k"}, "aggregates": map[string]any{"count": "count()"}}},
				}},
			}},
		}}}
	})
	require.NoError(t, err)
	for _, row := range []string{`{"k":"a","ts":1}`, `{"k":"a","ts":99,"drop":true}`, `{"k":"b","ts":50}`, `{"k":"a","ts":11}`} {
		offer(t, p, row)
	}
	require.NoError(t, p.Stop())
	messages := p.Sink.Messages()
	require.Len(t, messages, 2)
	require.JSONEq(t, `{"k":"b","ts":50}`, string(messages[0].Payload))
	require.JSONEq(t, `{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:10Z","k":"a","count":1}`, string(messages[1].Payload))
	for _, m := range messages {
		require.NoError(t, m.Err)
	}
}

// startup_grace keeps W unset after the first row of partitions that nobody
// declared; a tick ends it in the input host, the next batch elsewhere.
func TestStartupGrace(t *testing.T) {
	config := rawRows(`{"watermark": {"event_time": "this.ts", "delay": "0s", "partition": "this._p"}}`,
		`{"tumbling_window": {"size": "10s", "group_by": {"k": "this.k"}, "aggregates": {"count": "count()"}}}`)
	for _, form := range drive.Forms() {
		t.Run(form.Name, func(t *testing.T) {
			clock := drive.NewClock(time.Unix(1_800_000_000, 0))
			t.Cleanup(drive.SetClock(clock))
			p := started(t, form, drive.Setup{Processors: config})
			offer(t, p, `{"_p":"p0","k":"a","ts":50}`)
			clock.Advance(4 * time.Second)
			offer(t, p, `{"_p":"p1","k":"b","ts":25}`)
			offer(t, p, `{"_p":"p1","k":"b","ts":7}`) // W is unset, so nothing is late
			clock.Advance(time.Second)
			if !form.Clocked {
				offer(t, p, `{"_p":"p1","k":"b","ts":24}`)
			}
			waitRows(t, p, 1)
			offer(t, p, `{"_p":"p1","k":"b","ts":8}`) // late
			require.NoError(t, p.Stop())
			rows := rowsOf(p)
			require.Len(t, rows, 1)
			require.JSONEq(t, `{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:10Z","k":"b","count":1}`, rows[0])
			late, _ := p.Meter.Sum(lateRows)
			require.EqualValues(t, 1, late)
		})
	}
}
