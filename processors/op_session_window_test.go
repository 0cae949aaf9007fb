package processors

import (
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

func parsedSession(t *testing.T, text string) (*operator, error) {
	t.Helper()
	conf, err := sessionSpec().ParseYAML(text, nil)
	require.NoError(t, err)
	op, err := parseSession(conf)
	if err != nil {
		return nil, err
	}
	return op, op.try()
}

func TestSessionConfig(t *testing.T) {
	op, err := parsedSession(t, "gap: 90s\nmax_duration: 1h\noutput_mode: update\ngroup_by: { k: this.k }\naggregates: { n: count() }")
	require.NoError(t, err)
	require.Equal(t, time.Nanosecond, op.stage.Hold)
	require.True(t, op.stage.Revises)
	require.Equal(t, []windowing.Setting{{Field: "gap", Value: "1m30s"}, {Field: "max_duration", Value: "1h0m0s"}, {Field: "output_mode", Value: "update"},
		{Field: "group_by.k", Value: "this.k"}, {Field: "aggregates.n", Value: "count()"}}, op.stage.Definition)
	op, err = parsedSession(t, "gap: this.gap\naggregates: { n: count() }\nhaving: this.n > 1")
	require.NoError(t, err)
	require.False(t, op.stage.Revises)
	require.Equal(t, []windowing.Setting{{Field: "gap", Value: "this.gap"}, {Field: "aggregates.n", Value: "count()"}}, op.stage.Definition)
}

func TestSessionConfigErrors(t *testing.T) {
	const rest = "\naggregates: { n: count() }"
	for text, want := range map[string]string{
		`gap: ""`:                          `gap: "" is not allowed: use a duration above 0s`,
		"gap: 0s":                          `gap: "0s" is not allowed`,
		"gap: -1s":                         `gap: "-1s" is not allowed`,
		"gap: 5":                           `gap: "5" is not allowed`,
		"gap: 1d":                          `gap: "1d" is not allowed`,
		"gap: 5 m":                         `gap: "5 m" is not allowed`,
		"gap: 1.5":                         `gap: "1.5" is not allowed`,
		"gap: this.a +":                    `gap: "this.a +", line 1`,
		"gap: 10s\nmax_duration: 9s":       "max_duration: 9s is not allowed: use a duration that is at least the gap",
		"gap: 10s\nmax_duration: 0s":       "max_duration: 0s is not allowed",
		"gap: 10s\nmax_duration: x":        `max_duration: "x" is not a duration`,
		"gap: this.gap\nmax_duration: -1s": "max_duration: -1s is negative",
		"gap: 10s\nallowed_lateness: 5s":   "allowed_lateness: sessions have none",
		"gap: 10s\nallowed_lateness: 0s":   "raise the delay of the watermark",
		"gap: 10s\noutput_mode: complete":  `output_mode: "complete" is not one of sessions: use append or update`,
		"gap: 10s\noutput_mode: update\nearly: 1s": "early: with output_mode update",
		"gap: 10s\nhaving: this.n >":               "having: ",
	} {
		_, err := parsedSession(t, text+rest)
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, `session_window "session_window": `, text)
	}
	_, err := parsedSession(t, "gap: 10s\naggregates: { n: 'reduce(this.v, init: 0, add: this.acc +, merge: 0)' }")
	require.ErrorContains(t, err, "aggregates.n: reduce: add: ")
}

func TestGapOf(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`"20s"`: 20 * time.Second, `"1ns"`: 1, "1": time.Second, "0.25": 250 * time.Millisecond, "1e-9": 1, `"1h30m"`: 90 * time.Minute,
		"9223372036": 9223372036 * time.Second,
		`"0s"`:       0, `"-1s"`: 0, `"20"`: 0, `""`: 0, "0": 0, "-1": 0, "0.0": 0, "1e-10": 0, "1e30": 0, "9223372037": 0, "null": 0, "true": 0, "[1]": 0, "{}": 0,
	} {
		v, err := agg.ParseJSON(text)
		require.NoError(t, err)
		gap, ok := gapOf(v)
		require.Equal(t, want > 0, ok, text)
		if ok {
			require.Equal(t, want, gap, text)
		}
	}
}

// TestSessionRows: the gap stands behind the arguments, and a row without one is
// invalid.
func TestSessionRows(t *testing.T) {
	call, err := agg.Parse("sum(this.v)")
	require.NoError(t, err)
	cfg := windowing.SessionConfig{GapExpr: `this.gap`, MaxDuration: time.Minute,
		GroupBy: []windowing.GroupField{{Name: "k", Expr: "this.k"}}, Aggregates: []windowing.Aggregate{{Name: "s", Call: call}}}
	p, err := newProgram(compileSession(cfg))
	require.NoError(t, err)
	texts := []string{`{"k":"a","v":1,"gap":"30s"}`, `{"k":"b","v":2,"gap":1.5}`, `{"k":"c","v":3}`, `{"k":"d","v":3,"gap":61}`, `{"k":"e","v":"x","gap":1}`, `{"k":"f","v":4,"gap":60}`}
	rows := make([]windowing.Row, len(texts))
	for i, text := range texts {
		rows[i].Message = service.NewMessage([]byte(text))
	}
	p.extract(rows)
	for i, want := range map[int]time.Duration{0: 30 * time.Second, 1: 1500 * time.Millisecond, 5: time.Minute} {
		require.NoError(t, rows[i].Err)
		require.Len(t, rows[i].Args, 2)
		require.Equal(t, int64(want), rows[i].Args[1].AsInt())
	}
	require.Equal(t, int64(1), rows[0].Args[0].AsInt())
	require.Equal(t, int64(4), rows[5].Args[0].AsInt())
	for i, want := range map[int]error{2: errRowGap, 3: errRowGap, 4: agg.ErrArgument} {
		require.ErrorIs(t, rows[i].Err, want)
		require.Equal(t, windowing.Invalid, rows[i].Flag)
	}
	require.ErrorContains(t, rows[3].Err, "more than max_duration 1m0s")
	require.NotErrorIs(t, rows[2].Err, expr.ErrValue)
}
