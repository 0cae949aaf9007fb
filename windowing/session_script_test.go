package windowing_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// makeSession takes gap= (a duration, or this.name for the field that holds the
// gap of a row), max=, mode=update, early=, having=FIELD, late=, group_by=a,b and every aggregate as
// name=function(...).
func makeSession(t *testing.T, c command, st *windowing.Stage) {
	cfg := windowing.SessionConfig{Name: st.Name, PassLate: c.get("late", "drop") == "pass",
		Mode: windowing.OutputMode(slices.Index(windowing.OutputModes[:], c.get("mode", "append"))), MaxDuration: scriptDuration(t, c.get("max", "0s"))}
	if gap := c.get("gap", ""); strings.HasPrefix(gap, "this.") {
		cfg.GapExpr = gap
	} else {
		cfg.Gap = scriptDuration(t, gap)
	}
	cfg.GroupBy, cfg.Aggregates = scriptFields(t, c)
	cfg.Early, cfg.Having = scriptDuration(t, c.get("early", "0s")), scriptHaving(c, cfg.Aggregates)
	s := windowing.NewSession(cfg)
	st.Operator, st.Definition, st.Hold, st.Revises = s, s.Definition(), windowing.SessionHold, cfg.Revises()
	st.Binding = &sessionBinding{gap: cfg.GapExpr, windowBinding: windowBinding{
		config: windowing.WindowConfig{GroupBy: cfg.GroupBy, Aggregates: cfg.Aggregates},
		layout: windowing.NewArgLayout(cfg.Aggregates)}}
}

// sessionBinding evaluates the gap beside groups and arguments.
type sessionBinding struct {
	windowBinding
	gap string
}

func (b *sessionBinding) Extract(rows []windowing.Row) {
	b.windowBinding.Extract(rows)
	for i := range rows {
		row := &rows[i]
		if b.gap == "" || row.Flag != windowing.Data {
			continue
		}
		gap, err := time.ParseDuration(row.Message.(*message).evaluate(b.gap).AsString())
		if err != nil {
			b.fail(row, err)
			continue
		}
		row.Args = append(row.Args, agg.Int(int64(gap)))
	}
}
