package processors

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing"
)

// Fields of session_window.
const (
	kindSession      = "session_window"
	fieldGap         = "gap"
	fieldMaxDuration = "max_duration"
)

func sessionSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Windowing").
		Summary("Aggregates the rows of a group between two silences: visits of a user, trips of a vehicle, bursts of errors.").
		Description(`Rows of a group at a distance of at most `+"`gap`"+` are one session. A row may lie between two sessions and make them one. A session is reported as `+"`[first row, last row + gap)`"+`, although a row at exactly its end still joins.

With a gap for each row, a row covers the time from its own up to its own plus its gap; rows whose covers touch are one session, which ends with the last cover.

The rows of a batch are put together first, with each other and with the open sessions. Then a session without a row from before the batch is late, with all its rows, if it ended before the watermark. A session is final when the watermark has passed its end: then it comes out as one row, ordered by end, start and group, a JSON object of `+"`window_start`, `window_end`"+`, the `+"`group_by`"+` fields and the aggregates. Neither depends on the order of the rows in a batch, nor, as long as no row lies further behind than the watermark's `+"`delay`"+`, on how the input is cut into batches.

With `+"`output_mode: update`"+` the sessions that changed come out at the end of every batch, with `+"`windowed_timing: early`"+` until the watermark has passed the end; with `+"`early`"+` they do so now and then, and once more when they are final. The bounds of a session are part of its `+"`windowed_row_key`"+`: where they change, a row with `+"`windowed_timing: delete`"+`, with the old bounds and the group but no aggregates, goes before the new row, one for each session that was merged. A sink that replaces rows by their key, and deletes them for such a row, always holds each session once. No stateful operator may follow either, since it would count revisions.

Rows are delivered at least once. A row that comes twice, after a crash, has the same `+"`windowed_row_id`"+`.

State grows with the open sessions: one set of aggregates for each. A session that never falls silent never comes out in append mode: bound it with `+"`max_duration`"+`.`).
		Example("Visits of a web site", "A visit ends after half an hour without a click, or after twelve hours.", `
pipeline:
  threads: 1
  processors:
    - watermark:
        event_time: this.at
        delay: 1m
    - session_window:
        gap: 30m
        max_duration: 12h
        group_by: { user: this.user }
        aggregates:
          clicks: count()
          landing_page: first(this.page)
          exit_page: last(this.page)
`).
		Field(service.NewStringField(fieldGap).Example("30m").Example(`if this.kind == "call" { "2h" } else { "10m" }`).
			Description("The silence that ends a session: a duration, or a Bloblang expression that gives the gap of each row as a text such as `\"90s\"` or as a number of seconds, above 0.")).
		Field(service.NewStringField(fieldMaxDuration).Optional().Example("12h").
			Description("The longest a session may be from its start to its end, the gap included; at least `gap`. A row that would make one longer opens a session of its own, and a row between two sessions joins the earlier one if both together would be longer. Sessions of a group may overlap then, and which row is in which depends on the order of arrival. Without it there is no bound.")).
		Field(optionField(fieldOutputMode, windowing.OutputModes[windowing.Append], windowing.OutputModes[windowing.Update]).Default(windowing.OutputModes[windowing.Append]).
			Description("`append`: each session once, when it is final. `update`: at the end of each batch every session that changed, with its full value, and a delete row for bounds that are no more.")).
		Field(earlyField("while it is open")).
		Field(havingField("this.clicks >= 10")).
		Field(service.NewAnyField(fieldLateness).Optional().Deprecated().
			Description("Sessions have no allowed lateness; raise the `delay` of the watermark.")).
		Fields(aggregateFields()...).
		Fields(commonFields()...)
}

// Mistakes of a session.
var (
	errGap         = errors.New(`use a duration above 0s, such as 30s, 5m or 24h, or a Bloblang expression that gives one`)
	errMaxDuration = errors.New("use a duration that is at least the gap, or leave it out for no bound")
	errLateness    = errors.New("allowed_lateness: sessions have none, since a row after the end would change bounds that are out: remove it and raise the delay of the watermark by as much")
)

// parseSession reads the configuration of a session window.
func parseSession(conf *service.ParsedConfig) (*operator, error) {
	op, err := parseCommon(conf, kindSession)
	if err != nil {
		return nil, err
	}
	cfg, err := parseSessionConfig(conf, op.name)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	rows := newRowWriter(cfg.GroupBy, cfg.Aggregates)
	if cfg.Having, err = parseHaving(conf, rows); err != nil {
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	revises, early := cfg.Revises(), cfg.Early > 0
	if dryRun() { // no time passes there
		cfg.Early = 0
	}
	s := windowing.NewSession(cfg)
	op.stage.Operator, op.stage.Hold, op.stage.Revises, op.early = s, windowing.SessionHold, revises, early
	op.stage.Definition = s.Definition()
	op.compile = compileSession(cfg)
	op.bind = func(p *program) windowing.Binding { return &windowBinding{program: p, rows: rows} }
	return op, nil
}

func parseSessionConfig(conf *service.ParsedConfig, name string) (cfg windowing.SessionConfig, err error) {
	cfg.Name = name
	if conf.Contains(fieldLateness) {
		return cfg, errLateness
	}
	text, err := conf.FieldString(fieldGap)
	if err != nil {
		return cfg, err
	}
	if cfg.Gap, cfg.GapExpr, err = parseGap(text); err != nil {
		return cfg, err
	}
	if cfg.MaxDuration, err = parseDuration(conf, 0, fieldMaxDuration); err != nil {
		return cfg, err
	}
	if conf.Contains(fieldMaxDuration) && (cfg.MaxDuration == 0 || cfg.MaxDuration < cfg.Gap) {
		return cfg, fmt.Errorf("max_duration: %s is not allowed: %w", cfg.MaxDuration, errMaxDuration)
	}
	mode, err := conf.FieldString(fieldOutputMode)
	if err != nil {
		return cfg, err
	}
	if mode == windowing.OutputModes[windowing.Update] {
		cfg.Mode = windowing.Update
	} else if mode != windowing.OutputModes[windowing.Append] {
		return cfg, fmt.Errorf("output_mode: %q is not one of sessions: use append or update", mode)
	}
	if cfg.Early, err = parseEarly(conf, cfg.Mode); err != nil {
		return cfg, err
	}
	if cfg.GroupBy, err = parseGroups(conf); err != nil {
		return cfg, err
	}
	if cfg.Aggregates, err = parseAggregates(conf, cfg.GroupBy); err != nil {
		return cfg, err
	}
	late, err := parseOption(conf, fieldLate, "drop", "pass")
	cfg.PassLate = late == "pass"
	return cfg, err
}

// likeDuration is what nobody writes for an expression: a number, or a number with
// a word.
var likeDuration = regexp.MustCompile(`^[-+]?[0-9.]+ ?\pL*$`)

// parseGap tells a duration from an expression.
func parseGap(text string) (fixed time.Duration, expression string, err error) {
	text = strings.TrimSpace(text)
	fixed, err = time.ParseDuration(text)
	switch {
	case err == nil && fixed > 0:
		return fixed, "", nil
	case err == nil || text == "" || likeDuration.MatchString(text):
		return 0, "", fmt.Errorf("gap: %s is not allowed: %w", strconv.Quote(text), errGap)
	}
	return 0, text, nil
}

func init() { register(kindSession, sessionSpec(), parseSession) }
