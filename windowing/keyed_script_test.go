package windowing_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// makeKeyed takes key=, ttl= and late=. The code is scriptCode.
func makeKeyed(t *testing.T, c command, st *windowing.Stage) {
	cfg := windowing.KeyedConfig{Name: st.Name, Key: "this." + c.get("key", "k"), OnEvent: "script", OnTimer: "script",
		TTL: scriptDuration(t, c.get("ttl", "0s")), PassLate: c.get("late", "drop") == "pass", Evaluator: scriptCode{t}}
	k := windowing.NewKeyed(cfg)
	st.Operator, st.Definition = k, k.Definition()
	st.Binding = &keyedBinding{key: cfg.Key}
}

// scriptCode counts the rows of a key. A row has in its field
//
//	state=WORD    what becomes of the state: keep, delete, fail; else it is counted
//	timers=LIST   names with times: name:20 at 20, name:+5 five seconds from the
//	              row, name:w+5 five seconds of the wall clock after 1700000000
//	emit=N        how many rows come out
//
// and a timer does what its name begins with: report the count, delete as well,
// again ten seconds later, back (one that is not later), wall (from event time),
// event (from the wall clock) or fail.
type scriptCode struct{ t *testing.T }

var errScript = errors.New("the script fails")

const scriptWall = watermark.Time(1_700_000_000 * int64(time.Second))

func (s scriptCode) Event(call windowing.KeyedCall, row *windowing.Row) (effect windowing.KeyedEffect, err error) {
	m := row.Message.(*message)
	n := count(call)
	switch m.get("state").AsString() {
	case "keep":
	case "delete":
		effect.Set = true
	case "fail":
		return effect, errScript
	default:
		n++
		effect.Set, effect.State = true, strconv.Itoa(n)
	}
	for i := range m.get("emit").AsInt() {
		effect.Rows = append(effect.Rows, keyedRow(call, field{"n", agg.Int(int64(n))}, field{"row", agg.Int(i)}))
	}
	for _, text := range strings.Split(m.get("timers").AsString(), ",") {
		if name, at, found := strings.Cut(text, ":"); found {
			effect.Timers = append(effect.Timers, s.timer(name, at, row.Time))
		}
	}
	return effect, nil
}

func (s scriptCode) timer(name, at string, from watermark.Time) windowing.KeyedTimer {
	timer := windowing.KeyedTimer{Name: name}
	text, relative := strings.CutPrefix(at, "+")
	if after, wall := strings.CutPrefix(at, "w+"); wall {
		text, relative, timer.Processing, from = after, true, true, scriptWall
	}
	if !relative {
		from = 0
	}
	timer.At = from + scriptTime(s.t, text)
	return timer
}

func (s scriptCode) Timer(call windowing.KeyedCall, timer windowing.KeyedTimer) (effect windowing.KeyedEffect, err error) {
	report := keyedRow(call, field{"n", agg.Int(int64(count(call)))}, field{"timer", agg.String(timer.Name)}, field{"w", agg.String(seconds(call.Watermark))})
	effect.Rows = []windowing.Message{report}
	next := timer
	switch word, _, _ := strings.Cut(timer.Name, "-"); word {
	case "report":
	case "silent":
		effect.Rows = nil
	case "delete":
		effect.Set = true
	case "again":
		next.At = next.At.Add(10 * time.Second)
		effect.Timers = []windowing.KeyedTimer{next}
	case "back":
		effect.Set, effect.State = true, "100"
		effect.Timers = []windowing.KeyedTimer{next, {Name: "report", At: next.At.Add(time.Second), Processing: next.Processing}}
	case "wall":
		effect.Timers = []windowing.KeyedTimer{{Name: "report", At: scriptWall.Add(30 * time.Second), Processing: true}}
	case "event":
		effect.Timers = []windowing.KeyedTimer{{Name: "report", At: 40 * watermark.Time(time.Second)}}
	case "fail":
		return effect, errScript
	default:
		require.Fail(s.t, "unknown timer", timer.Name)
	}
	return effect, nil
}

func count(call windowing.KeyedCall) int {
	n, err := strconv.Atoi("0" + call.State)
	if err != nil {
		panic(err)
	}
	return n
}

func keyedRow(call windowing.KeyedCall, fields ...field) *message {
	key, _, err := agg.DecodeKey(call.Key)
	if err != nil {
		panic(err)
	}
	return &message{fields: append([]field{{"k", key}}, fields...)}
}

type keyedBinding struct {
	failing
	key string
}

func (b *keyedBinding) Extract(rows []windowing.Row) {
	for i := range rows {
		if row := &rows[i]; row.Flag == windowing.Data {
			row.Key = row.Message.(*message).evaluate(b.key).AppendKey(nil)
		}
	}
}

// Render gives the row that the code made, or the timer that was refused.
func (b *keyedBinding) Render(res *windowing.Result) windowing.Message {
	if m, ok := res.Message.(*message); ok {
		return m
	}
	m := keyedRow(windowing.KeyedCall{Key: res.Key}, field{"timer", agg.String(res.Message.(windowing.KeyedTimer).Name)})
	m.err = res.Err
	return m
}
