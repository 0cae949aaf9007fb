package windowing_test

import (
	"testing"

	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// makeDedupe takes key=, within= (a duration, or rows for one that each row
// brings in its field within), with_event_time=, keep=, duplicates= and late=.
func makeDedupe(t *testing.T, c command, st *windowing.Stage) {
	cfg := windowing.DedupeConfig{Name: st.Name, Key: "this." + c.get("key", "id"), WithEventTime: c.get("with_event_time", "false") == "true",
		KeepLast: c.get("keep", "first") == "last", PassDuplicates: c.get("duplicates", "drop") == "pass",
		PassLate: c.get("late", "drop") == "pass", Codec: scriptCodec{}}
	if within := c.get("within", "0s"); within == "rows" {
		cfg.Within, cfg.DefaultWithin = -1, true
	} else {
		cfg.Within = scriptDuration(t, within)
	}
	d := windowing.NewDedupe(cfg)
	st.Operator, st.Definition, st.Hold = d, d.Definition(), cfg.Hold()
	st.Binding = &dedupeBinding{t: t, config: cfg}
}

type dedupeBinding struct {
	failing
	t      *testing.T
	config windowing.DedupeConfig
}

func (b *dedupeBinding) Extract(rows []windowing.Row) {
	for i := range rows {
		row := &rows[i]
		if row.Flag != windowing.Data {
			continue
		}
		m := row.Message.(*message)
		row.Key = m.evaluate(b.config.Key).AppendKey(nil)
		if b.config.Within < 0 {
			row.Args = []agg.Value{agg.Int(int64(scriptDuration(b.t, m.get("within").AsString())))}
		}
	}
}

func (b *dedupeBinding) Render(res *windowing.Result) windowing.Message { return res.Message }
