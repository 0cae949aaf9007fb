package windowing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

const heartbeat = "_heartbeat"

// eventRows makes the rows of a batch. A value is JSON, any other word a text.
func eventRows(t *testing.T, commands []command) []windowing.Row {
	var rows []windowing.Row
	for _, c := range commands {
		require.Equal(t, "event", c.verb)
		m := &message{}
		for _, a := range c.args {
			v := bareValue(a.value)
			if a.name == "ts" {
				v = agg.String(a.value) // its digits are more than a float holds
			}
			m.fields = append(m.fields, field{name: a.name, value: v})
		}
		rows = append(rows, windowing.Row{Message: m, Entry: int32(len(rows))})
	}
	return rows
}

func bareValue(text string) agg.Value {
	v, err := agg.ParseJSON(text)
	if err != nil {
		return agg.String(text)
	}
	return v
}

// heartbeats moves the first watermark of the chain to W.
func heartbeats(stages []stage, w watermark.Time) []windowing.Row {
	var rows []windowing.Row
	for _, src := range stages[0].Watermark.Config.Sources {
		at := w.Add(src.Delay)
		rows = append(rows, windowing.Row{Message: &message{fields: []field{
			{name: "ts", value: agg.String(seconds(at))}, {name: "_source", value: agg.String(src.Name)}, {name: heartbeat, value: agg.Bool(true)},
		}}})
	}
	return rows
}

func dropHeartbeats(rows []windowing.Row) []windowing.Row {
	var kept []windowing.Row
	for _, row := range rows {
		if row.Message.(*message).get(heartbeat).IsNull() {
			kept = append(kept, row)
		}
	}
	return kept
}

// describe gives the line of a row that left the chain.
func describe(t *testing.T, row windowing.Row) string {
	m := row.Message.(*message)
	mark := row.Mark
	switch {
	case row.Flag == windowing.Invalid && mark == nil:
		require.Equal(t, row.Err, m.err)
		return fmt.Sprintf("invalid %s: %s", m, reason(row.Err))
	case row.Flag == windowing.Late:
		require.Equal(t, windowing.NoTiming, mark.Timing)
		require.Equal(t, row.Time, mark.EventTime)
		return fmt.Sprintf("late for %s by %s, W %s: %s", mark.Operator, mark.LateBy, seconds(mark.Watermark), m)
	case row.Flag == windowing.Duplicate:
		require.Equal(t, windowing.NoTiming, mark.Timing)
		return fmt.Sprintf("duplicate for %s, W %s: %s", mark.Operator, seconds(mark.Watermark), m)
	case mark == nil:
		return fmt.Sprintf("row %s", m)
	}
	require.Equal(t, row.Time, mark.EventTime)
	var b strings.Builder
	if mark.Spanned {
		require.Less(t, mark.Start, mark.End)
		fmt.Fprintf(&b, "[%s, %s) ", seconds(mark.Start), seconds(mark.End))
	}
	b.WriteString(m.String())
	if mark.Timing != windowing.OnTime || mark.Revision != 1 {
		fmt.Fprintf(&b, " (%s, revision %d)", mark.Timing, mark.Revision)
	}
	if row.Err != nil {
		require.Equal(t, row.Err, m.err)
		fmt.Fprintf(&b, " error: %s", reason(row.Err))
	}
	return strings.TrimSpace(b.String())
}

// reason is what an error wraps, so that scripts do not depend on its words.
func reason(err error) string {
	for _, sentinel := range []error{agg.ErrArgument, agg.ErrOverflow, agg.ErrLimit, windowing.ErrFilter, windowing.ErrFanOut, windowing.ErrTimer, windowing.ErrOnTimer, watermark.ErrRange} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	return err.Error()
}

// seconds writes a time as an exact decimal.
func seconds(at watermark.Time) string {
	if at == watermark.Unset || at == watermark.EndOfTime {
		return at.String()
	}
	sign, abs := "", int64(at)
	if abs < 0 {
		sign, abs = "-", -abs
	}
	s := fmt.Sprintf("%s%d.%09d", sign, abs/int64(time.Second), abs%int64(time.Second))
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
