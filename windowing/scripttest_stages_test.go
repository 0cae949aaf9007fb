package windowing_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// stage is a stage of a script. Its first word is the kind, `name` overrides the
// name.
type stage struct {
	windowing.Stage
}

// stageMakers has a line for each kind. A maker fills in what is beyond kind and
// name.
var stageMakers = map[string]func(t *testing.T, c command, st *windowing.Stage){
	"watermark":         makeWatermark,
	"tumbling_window":   makeTumbling,
	"session_window":    makeSession,
	"sliding_window":    makeSliding,
	"cumulative_window": makeCumulative,
	"keyed_state":       makeKeyed,
}

// makeStages puts a stage that takes out heartbeats behind every watermark.
func makeStages(t *testing.T, commands []command) []stage {
	var stages []stage
	for _, c := range commands {
		kind := c.args[0].value
		maker := stageMakers[kind]
		require.NotNil(t, maker, "unknown kind of stage %q", kind)
		st := stage{}
		st.Kind, st.Name = kind, c.get("name", kind)
		maker(t, c, &st.Stage)
		stages = append(stages, st)
		if kind == "watermark" {
			stages = append(stages, stage{Stage: windowing.Stage{Foreign: true}})
		}
	}
	return stages
}

// makeWatermark takes delay=, idle=, partitions=a,b, grace=, max_ahead=, or
// sources=name:delay,...
func makeWatermark(t *testing.T, c command, st *windowing.Stage) {
	w := &windowing.Watermark{MaxAhead: scriptDuration(t, c.get("max_ahead", "0s"))}
	w.Config.StartupGrace = scriptDuration(t, c.get("grace", "0s"))
	for _, text := range strings.Split(c.get("sources", ":"+c.get("delay", "0s")), ",") {
		name, delay, _ := strings.Cut(text, ":")
		src := watermark.SourceConfig{Name: name, Delay: scriptDuration(t, delay), IdleTimeout: scriptDuration(t, c.get("idle", "0s"))}
		if list := c.get("partitions", ""); list != "" {
			src.Partitions = strings.Split(list, ",")
		}
		w.Config.Sources = append(w.Config.Sources, src)
	}
	st.Watermark = w
	st.Binding = &watermarkBinding{config: &w.Config}
}

// makeTumbling takes size=, offset=, timezone=, late=, group_by=a,b and every
// aggregate as name=function(...).
func makeTumbling(t *testing.T, c command, st *windowing.Stage) {
	if calendar := scriptCalendar(t, c, c.get("size", "")); calendar != nil {
		makeWindow(t, c, st, calendar)
		return
	}
	grid, err := windowing.NewTumbling(scriptDuration(t, c.get("size", "")), scriptDuration(t, c.get("offset", "0s")))
	require.NoError(t, err)
	makeWindow(t, c, st, grid)
}

// makeSliding takes slide= too.
func makeSliding(t *testing.T, c command, st *windowing.Stage) {
	if calendar := scriptCalendar(t, c, c.get("slide", "")); calendar != nil {
		makeWindow(t, c, st, calendar)
		return
	}
	grid, err := windowing.NewSliding(scriptDuration(t, c.get("size", "")), scriptDuration(t, c.get("slide", "")), scriptDuration(t, c.get("offset", "0s")))
	require.NoError(t, err)
	makeWindow(t, c, st, grid)
}

// scriptCalendar gives a grid where the size is one of the calendar.
func scriptCalendar(t *testing.T, c command, slide string) windowing.Assigner {
	size, ok, err := windowing.ParseCalendarSize(c.get("size", ""))
	require.NoError(t, err)
	if !ok {
		return nil
	}
	hop, _, err := windowing.ParseCalendarSize(slide)
	require.NoError(t, err)
	zone, err := time.LoadLocation(c.get("timezone", "UTC"))
	require.NoError(t, err)
	grid, err := windowing.NewCalendar(size, hop, scriptDuration(t, c.get("offset", "0s")), zone)
	require.NoError(t, err)
	return grid
}

// makeCumulative takes size=, step=, offset= and timezone=.
func makeCumulative(t *testing.T, c command, st *windowing.Stage) {
	size, calendar, err := windowing.ParseCalendarSize(c.get("size", ""))
	require.NoError(t, err)
	if calendar {
		zone, err := time.LoadLocation(c.get("timezone", "UTC"))
		require.NoError(t, err)
		grid, err := windowing.NewCalendarSteps(size, scriptDuration(t, c.get("step", "")), scriptDuration(t, c.get("offset", "0s")), zone)
		require.NoError(t, err)
		makeWindow(t, c, st, grid)
		return
	}
	grid, err := windowing.NewCumulative(scriptDuration(t, c.get("size", "")), scriptDuration(t, c.get("step", "")), scriptDuration(t, c.get("offset", "0s")))
	require.NoError(t, err)
	makeWindow(t, c, st, grid)
}

// makeWindow takes what all windows have: output_mode=, allowed_lateness=, early=,
// fill=, fill_for= and having=FIELD, the name of an aggregate that has to be above 0.
func makeWindow(t *testing.T, c command, st *windowing.Stage, assigner windowing.Assigner) {
	cfg := windowing.WindowConfig{Name: st.Name, Assigner: assigner, PassLate: c.get("late", "drop") == "pass"}
	cfg.GroupBy, cfg.Aggregates = scriptFields(t, c)
	mode := slices.Index(windowing.OutputModes[:], c.get("output_mode", "append"))
	require.GreaterOrEqual(t, mode, 0)
	cfg.Mode, cfg.Lateness = windowing.OutputMode(mode), scriptDuration(t, c.get("allowed_lateness", "0s"))
	cfg.Early = scriptDuration(t, c.get("early", "0s"))
	cfg.Having = scriptHaving(c, cfg.Aggregates)
	cfg.Fill = windowing.Fill(slices.Index(windowing.Fills[:], c.get("fill", "none")))
	cfg.FillFor = scriptDuration(t, c.get("fill_for", "0s"))
	st.Revises = cfg.Revises()
	w := windowing.NewWindow(cfg)
	st.Operator, st.Definition = w, w.Definition()
	st.Binding = &windowBinding{config: cfg, layout: windowing.NewArgLayout(cfg.Aggregates)}
}

// scriptHaving makes the condition that a field is above 0.
func scriptHaving(c command, aggregates []windowing.Aggregate) func(*windowing.Result) (bool, error) {
	field := c.get("having", "")
	if field == "" {
		return nil
	}
	at := slices.IndexFunc(aggregates, func(a windowing.Aggregate) bool { return a.Name == field })
	return func(res *windowing.Result) (bool, error) { return res.Values[at].AsInt() > 0, nil }
}

// scriptFields reads group_by and the aggregates.
func scriptFields(t *testing.T, c command) (groups []windowing.GroupField, aggregates []windowing.Aggregate) {
	if list := c.get("group_by", ""); list != "" {
		for _, name := range strings.Split(list, ",") {
			groups = append(groups, windowing.GroupField{Name: name, Expr: "this." + name})
		}
	}
	for _, a := range c.args {
		if strings.Contains(a.value, "(") {
			call, err := agg.Parse(a.value)
			require.NoError(t, err)
			aggregates = append(aggregates, windowing.Aggregate{Name: a.name, Call: call})
		}
	}
	sort.Slice(groups, func(i, j int) bool { return groups[i].Name < groups[j].Name })
	sort.Slice(aggregates, func(i, j int) bool { return aggregates[i].Name < aggregates[j].Name })
	return groups, aggregates
}

// message is what rows of scripts carry.
type message struct {
	fields []field
	err    error
}

type field struct {
	name  string
	value agg.Value
}

// get is the value of a field, null where it is missing.
func (m *message) get(name string) agg.Value {
	if i := slices.IndexFunc(m.fields, func(f field) bool { return f.name == name }); i >= 0 {
		return m.fields[i].value
	}
	return agg.Null()
}

// evaluate knows `this.name` only.
func (m *message) evaluate(expr string) agg.Value {
	name, found := strings.CutPrefix(expr, "this.")
	if !found {
		panic("scripts know expressions of the form this.name, not " + expr)
	}
	return m.get(name)
}

// String gives the fields as a script writes them.
func (m *message) String() string {
	var parts []string
	for _, f := range m.fields {
		text := string(f.value.AppendJSON(nil))
		if bare := f.value.AsString(); isWord(bare) && (f.name == "ts" || bareValue(bare) == f.value) {
			text = bare
		}
		parts = append(parts, f.name+"="+text)
	}
	return strings.Join(parts, " ")
}

// isWord says whether a text needs no quotes.
func isWord(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) < 0
}

// failing makes messages with errors.
type failing struct{}

func (failing) Fail(m windowing.Message, err error) windowing.Message {
	return &message{fields: m.(*message).fields, err: err}
}

func (f failing) fail(row *windowing.Row, err error) {
	row.Flag, row.Err, row.Message = windowing.Invalid, err, f.Fail(row.Message, err)
}

// watermarkBinding reads ts, _source and _partition.
type watermarkBinding struct {
	failing
	config *watermark.Config
}

func (b *watermarkBinding) Extract(rows []windowing.Row) {
	for i := range rows {
		row := &rows[i]
		if row.Flag != windowing.Data {
			continue
		}
		m := row.Message.(*message)
		at, err := watermark.Second.FromDecimal(m.get("ts").AsString())
		if err != nil {
			b.fail(row, err)
			continue
		}
		source := slices.IndexFunc(b.config.Sources, func(s watermark.SourceConfig) bool { return s.Name == m.get("_source").AsString() })
		if source < 0 {
			b.fail(row, fmt.Errorf("no source %q", m.get("_source").AsString()))
			continue
		}
		row.Time, row.Source, row.Partition = at, int32(source), m.get("_partition").AsString()
	}
}

func (*watermarkBinding) Render(*windowing.Result) windowing.Message {
	panic("a watermark emits nothing")
}

// windowBinding evaluates groups and arguments.
type windowBinding struct {
	failing
	config windowing.WindowConfig
	layout *windowing.ArgLayout
}

func (b *windowBinding) Extract(rows []windowing.Row) {
	for i := range rows {
		row := &rows[i]
		if row.Flag != windowing.Data {
			continue
		}
		m := row.Message.(*message)
		row.Key, row.Args = nil, nil
		for _, g := range b.config.GroupBy {
			row.Key = m.evaluate(g.Expr).AppendKey(row.Key)
		}
		for _, expr := range b.layout.Exprs() {
			row.Args = append(row.Args, m.evaluate(expr))
		}
		if err := b.layout.Check(row); err != nil {
			b.fail(row, err)
		}
	}
}

func (b *windowBinding) Render(res *windowing.Result) windowing.Message {
	m := &message{err: res.Err}
	rest := res.Key
	for _, g := range b.config.GroupBy {
		var v agg.Value
		var err error
		if v, rest, err = agg.DecodeKey(rest); err != nil {
			panic(err)
		}
		m.fields = append(m.fields, field{name: g.Name, value: v})
	}
	for i, a := range b.config.Aggregates {
		if res.Timing == windowing.Deleted {
			break
		}
		m.fields = append(m.fields, field{name: a.Name, value: res.Values[i]})
	}
	return m
}

func scriptDuration(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

func scriptTime(t *testing.T, text string) watermark.Time {
	at, err := watermark.Second.FromDecimal(text)
	require.NoError(t, err)
	return at
}
