package processors

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

func codeOf(t testing.TB, onEvent, onTimer string) *keyedCode {
	c := &keyedCode{}
	var err error
	c.onEvent, err = bloblang.GlobalEnvironment().Parse(onEvent)
	require.NoError(t, err)
	if onTimer != "" {
		c.onTimer, err = bloblang.GlobalEnvironment().Parse(onTimer)
		require.NoError(t, err)
	}
	return c
}

// describeEffect writes an effect in one line.
func describeEffect(t testing.TB, e windowing.KeyedEffect) string {
	text := "keep"
	if e.Set {
		text = "state " + e.State
	}
	for _, m := range e.Rows {
		b, err := m.(*service.Message).AsBytes()
		require.NoError(t, err)
		text += " | row " + string(b)
	}
	for _, timer := range e.Timers {
		text += " | timer " + timer.String()
	}
	return text
}

func TestOnEventSeesAndSets(t *testing.T) {
	for _, c := range []struct{ mapping, state, want string }{
		{`root.state = (this.state | 0) + 1`, ``, `state 1`},
		{`root.state = (this.state | 0) + 1`, `41`, `state 42`},
		{`root.state.n = (this.state.n | 0) + 1`, `{"n":9007199254740993,"gone":true}`, `state {"n":9007199254740994}`},
		{"root.state = this.state\nroot.emit = [this.state]", `{"id":18446744073709551615}`, `state {"id":18446744073709551615} | row {"id":18446744073709551615}`},
		{`root.state = this.state`, `18446744073709551615`, `state 18446744073709551615`},
		{`root.state = this.state.assign({"n": this.state.n})`, `{"n":1.0,"kept":"é<"}`, `state {"kept":"é<","n":1}`},
		{"root.state = if this.event.amount >= 10 { (this.state | 0) + 1 } else { 0 }\nroot.emit = [ { \"k\": this.key, \"streak\": root.state } ]", `3`, `state 4 | row {"k":"a","streak":4}`},
		{`root.state = null`, `1`, `state `},
		{`root.state = deleted()`, `1`, `keep`},
		{`root.state = if false { 1 }`, `1`, `keep`},
		{`let a = 1`, `{"state":1}`, `keep`},
		{`root.emit = if this.state == null { [] }`, ``, `keep`},
		{`root = {"state": "x"}`, ``, `state "x"`},
		{`root.state = ""`, ``, `state ""`},
		{`root.state = false`, ``, `state false`},
		{`root.emit = [this.event, @topic, this.event_time, this.watermark]`, ``, `keep | row {"amount":12.5,"k":"a"} | row "orders" | row 1769076006.066 | row 1769076000`},
		{`root.emit = null
root.timers = null`, ``, `keep`},
		{`root.timers = [{"name": "a", "at": this.event_time + 10}, {"name": "b", "at": 5, "processing": true}, {"name": "c", "at": -0.000001}]`, ``,
			`keep | timer "a" at 2026-01-22T10:00:16.066Z | timer "b" at 1970-01-01T00:00:05Z, processing time | timer "c" at 1969-12-31T23:59:59.999999Z`},
	} {
		t.Run(c.mapping, func(t *testing.T) {
			m := service.NewMessage([]byte(`{"k":"a","amount":12.5}`))
			m.MetaSetMut("topic", "orders")
			row := &windowing.Row{Message: m, Time: 1769076006066 * 1e6}
			call := windowing.KeyedCall{Key: agg.String("a").AppendKey(nil), State: c.state, Watermark: 1769076000 * 1e9}
			effect, err := codeOf(t, c.mapping, "root = {}").Event(call, row)
			require.NoError(t, err)
			require.Equal(t, c.want, describeEffect(t, effect))
			text, err := m.AsBytes()
			require.NoError(t, err)
			require.Equal(t, `{"k":"a","amount":12.5}`, string(text))
		})
	}
}

func TestOnEventRefuses(t *testing.T) {
	for mapping, parts := range map[string][]string{
		`root = "x"`:                                           {"on_event", "root", "root.state, root.emit and root.timers"},
		`root = deleted()`:                                     {"on_event", "root"},
		`root.emits = []`:                                      {"root.emits", "root.state, root.emit"},
		`root.state = this.state.x + 1`:                        {"on_event", "line 1"},
		`root.emit = {"a": 1}`:                                 {"root.emit", "list of rows"},
		`root.emit = [{"a": 1}, null]`:                         {"root.emit[1]", "list of rows"},
		`root.timers = {"name": "a", "at": 1}`:                 {"root.timers", "list of timers"},
		`root.timers = [1]`:                                    {"root.timers[0]", "list of timers"},
		`root.timers = [{"at": 1}]`:                            {"root.timers[0]", "name"},
		`root.timers = [{"name": 1, "at": 1}]`:                 {"root.timers[0]", "name"},
		`root.timers = [{"name": "a"}]`:                        {"root.timers[0]", "at", "number of seconds"},
		`root.timers = [{"name":"a","at":"1"}]`:                {"root.timers[0]", "at", "number of seconds"},
		`root.timers = [{"name":"a","at":1769076006066}]`:      {"root.timers[0]", "at", "ms"},
		`root.timers = [{"name":"a","at":1,"processing":"x"}]`: {"root.timers[0]", "processing"},
		`root.timers = [{"name":"a","at":1,"every":1}]`:        {"root.timers[0]", "every", "name, at and processing"},
	} {
		row := &windowing.Row{Message: service.NewMessage([]byte(`{"k":"a"}`)), Time: 0}
		effect, err := codeOf(t, mapping, "root = {}").Event(windowing.KeyedCall{Key: agg.Null().AppendKey(nil), State: `"x"`, Watermark: watermark.Unset}, row)
		require.Error(t, err, mapping)
		for _, part := range parts {
			require.ErrorContains(t, err, part)
		}
		require.Empty(t, effect, mapping)
	}
	row := &windowing.Row{Message: service.NewMessage([]byte(`{}`))}
	_, err := codeOf(t, `root.timers = [{"name":"a","at":1}]`, "").Event(windowing.KeyedCall{Key: agg.Null().AppendKey(nil)}, row)
	require.ErrorContains(t, err, "on_timer")
}

func TestOnTimerSeesAndSets(t *testing.T) {
	code := codeOf(t, "root = {}", `root.emit = [ { "all": this } ]
root.timers = [ { "name": this.timer.name, "at": this.timer.at + 0.5 } ]
root.state = null`)
	call := windowing.KeyedCall{Key: agg.Int(7).AppendKey(nil), State: `{"n":1}`, Watermark: watermark.Unset}
	effect, err := code.Timer(call, windowing.KeyedTimer{Name: "quiet", At: 10 * 1e9})
	require.NoError(t, err)
	require.Equal(t, `state  | row {"all":{"key":7,"state":{"n":1},"timer":{"at":10,"name":"quiet"},"watermark":null}} | timer "quiet" at 1970-01-01T00:00:10.5Z`, describeEffect(t, effect))
}

func TestSecondsAreGoodToAMicrosecond(t *testing.T) {
	for at, want := range map[watermark.Time]any{
		0: int64(0), 1: int64(0), -1: int64(0), 499: int64(0), 500: 0.000001, 1e9: int64(1), -1e9: int64(-1), -500: int64(0), -501: -0.000001,
		1769076006066123456: 1769076006.066123, 1769076006066123500: 1769076006.066124,
		9e18 + 123456789: 9000000000.123457, -9e18 - 123456789: -9000000000.123457,
	} {
		require.Equal(t, want, secondsOf(at), "%d ns", at)
		back, err := timeOfSeconds(secondsOf(at))
		require.NoError(t, err)
		require.LessOrEqual(t, max(back-at, at-back), microsecond/2, "%d ns came back as %d", at, back)
	}
	require.Nil(t, secondsOf(watermark.Unset))
	for _, end := range []watermark.Time{watermark.Min, watermark.Max} { // beyond what a float64 holds
		require.InDelta(t, float64(end)/1e9, secondsOf(end), 2e-6)
	}
	for _, at := range []any{"1", nil, true, 1e300, []any{}, int64(1) << 62} {
		_, err := timeOfSeconds(at)
		require.Error(t, err, "%v", at)
	}
}

// States of every kind and length follow each other in one decoder, also after one
// that cannot be read.
func TestStatesAreReadOneAfterTheOther(t *testing.T) {
	var r stateReader
	long := strings.Repeat("é", 5000)
	for range 3 {
		for text, want := range map[string]any{`1`: json.Number("1"), `9007199254740993`: json.Number("9007199254740993"), `"x"`: "x", `true`: true,
			`{"a":[1.5]}`: map[string]any{"a": []any{json.Number("1.5")}}, `"` + long + `"`: long, `[]`: []any{}} {
			got, err := r.read(text)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		for _, text := range []string{`{"a":`, `x`, `"x`} {
			_, err := r.read(text)
			require.Error(t, err, text)
		}
	}
}

func BenchmarkOnEvent(b *testing.B) {
	code := codeOf(b, "root.state = { \"n\": (this.state.n | 0) + 1 }\nroot.timers = [ { \"name\": \"quiet\", \"at\": this.event_time + 10 } ]", "root.state = null")
	key := agg.String("customer-17").AppendKey(nil)
	row := &windowing.Row{Message: service.NewMessage([]byte(`{"customer":"customer-17","amount":12.5}`)), Time: 1769076006066 * 1e6}
	call := windowing.KeyedCall{Key: key, State: `{"n":41}`, Watermark: 1769076000 * 1e9}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := code.Event(call, row); err != nil {
			b.Fatal(err)
		}
	}
}
