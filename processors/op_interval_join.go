package processors

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing"
)

// Fields of interval_join.
const (
	kindJoin            = "interval_join"
	fieldLeft           = "left"
	fieldRight          = "right"
	fieldSource         = "source"
	fieldKey            = "key"
	fieldLower          = "lower"
	fieldUpper          = "upper"
	fieldLowerInclusive = "lower_inclusive"
	fieldUpperInclusive = "upper_inclusive"
	fieldType           = "type"
	fieldMaxMatches     = "max_matches"
	fieldResult         = "result"
)

// sideFields are the fields of a side, by windowing.LeftSide and RightSide.
var sideFields = [2]string{windowing.LeftSide: fieldLeft, windowing.RightSide: fieldRight}

func joinSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Windowing").
		Summary("Joins rows of two sources that have equal keys and lie close together in event time: orders with payments, clicks with impressions, alarms with the readings around them.").
		Description(`The sides are two of the `+"`sources`"+` of the `+"`watermark`"+` before it; rows of other sources pass untouched. A pair matches when `+"`left.t + lower <= right.t <= left.t + upper`"+`, where t is event time. It comes out as soon as both are there, whichever came first, as `+"`{\"left\": …, \"right\": …}`"+` with the payloads as they are, or as what `+"`result`"+` makes of that. Its event time is the larger of the two.

Which rows come out is the `+"`type`"+`, as in SQL: `+"`inner`"+` pairs only; `+"`left`, `right` and `full`"+` also the rows of that side, or of both, that never find a partner, with null for the other side; `+"`semi`"+` the left rows that have a partner, once each, and `+"`anti`"+` those that have none, both as `+"`{\"left\": …}`"+`. That a row has no partner is known when none can come any more: when the watermark has passed `+"`left.t + upper`"+`, or `+"`right.t - lower`"+`. It comes out then, exactly once, and never after a match. A null key matches nothing, not even another null; an outer row with one comes out at once.

A row older than the watermark is late. The watermark is the smaller one of the sources, so that a side that falls silent keeps the rows of the other waiting: give the sources an `+"`idle_timeout`"+`.

Rows are delivered at least once. `+"`windowed_row_key`"+` consists of the key and of the numbers under which both rows arrived, so that a row that comes twice, after a crash, can be told from another pair of the same key. The metadata of the two messages is not copied.

State grows with the rows that wait: each with its payload, for as long as a partner may come. An operator behind a join with unmatched rows hears a watermark that is held back by `+"`upper`"+` (left, anti), by `+"`-lower`"+` (right), or by the larger of them (full), where they are positive.`).
		Example("Orders and payments", "Each order with its payments within five minutes, and the orders that were not paid.", `
pipeline:
  threads: 1
  processors:
    - watermark:
        sources:
          orders:   { when: 'this.type == "order"',   event_time: this.at, delay: 1m }
          payments: { when: 'this.type == "payment"', event_time: this.at, delay: 1m }
    - interval_join:
        left:  { source: orders,   key: this.id }
        right: { source: payments, key: this.order_id }
        lower: 0s
        upper: 5m
        type: left
`).
		Fields(joinFields()...).
		Field(lateField()).
		Fields(commonFields()...)
}

func joinFields() []*service.ConfigField {
	side := func(name string) *service.ConfigField {
		return service.NewObjectField(name,
			service.NewStringField(fieldSource).Description("The name of a source of the watermark."),
			service.NewStringField(fieldKey).Example("this.id").Description("A Bloblang expression for the key. Null matches nothing; 1 and 1.0 are one key, \"1\" is another. A list or an object makes a key of several parts."),
		).Description("The " + name + " side.")
	}
	bound := func(name, description string) *service.ConfigField {
		return service.NewStringField(name).Description(description).LintRule(durationLint(name, true))
	}
	return []*service.ConfigField{
		side(fieldLeft), side(fieldRight),
		bound(fieldLower, "The smallest `right.t - left.t` of a pair. Negative: the right row may be older.").Default("0s").Example("-10s"),
		bound(fieldUpper, "The largest `right.t - left.t` of a pair, at least `lower`. It may be negative too.").Example("5m"),
		optionField(fieldType, windowing.JoinTypes[:]...).Default(windowing.JoinTypes[windowing.InnerJoin]).
			Description("Which rows come out: `inner`, `left`, `right`, `full`, `semi` or `anti`."),
		service.NewBoolField(fieldLowerInclusive).Default(true).Advanced().Description("Whether a pair at exactly `lower` matches."),
		service.NewBoolField(fieldUpperInclusive).Default(true).Advanced().Description("Whether a pair at exactly `upper` matches."),
		service.NewIntField(fieldMaxMatches).Default(0).Advanced().
			Description("How many partners one row may have; `0` is any number. A row that would have more, or give one of its partners more, goes on with an error and enters no state: a key that everything shares must not flood the output. Not with `semi` and `anti`, whose rows come out once."),
		service.NewStringField(fieldResult).Optional().Example(`root = this.left.assign({"paid_at": this.right.at})`).
			Description("A Bloblang expression or mapping that makes the result out of `this.left` and `this.right`. A result for which it fails comes out as it is without it, with the error."),
	}
}

// lateField is what becomes of late rows.
func lateField() *service.ConfigField {
	return optionField(fieldLate, "drop", "pass").Default("drop").
		Description("What becomes of late rows: they are counted, and with `pass` go on with the metadata `windowed_late_operator` and `windowed_late_by`.")
}

// Mistakes of a join.
var (
	errSide    = errors.New("the sides of a join are two sources of the watermark before it")
	errBounds  = errors.New("nothing lies between them: lower must not be above upper, nor equal to it where one of them is excluded")
	errMatches = errors.New("max_matches: rows of a semi or anti join come out once: remove it")
)

// parseJoin reads the configuration of an interval join.
func parseJoin(conf *service.ParsedConfig) (*operator, error) {
	op, err := parseCommon(conf, kindJoin)
	if err != nil {
		return nil, err
	}
	cfg, err := parseJoinConfig(conf, op.name)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	rows, err := newJoinRows(conf, cfg.Type)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	cfg.Codec = jsonCodec{}
	fit := func(delay time.Duration) {
		cfg.Delay = delay
		j := windowing.NewJoin(cfg)
		op.stage.Operator, op.stage.Hold, op.stage.Definition = j, cfg.Hold(), j.Definition()
	}
	fit(likelyDelay)
	side := &sides{names: [2]string{cfg.Sides[windowing.LeftSide].Source, cfg.Sides[windowing.RightSide].Source}}
	op.behind = func(w *operator) error {
		fit(w.delay)
		return side.behind(w)
	}
	op.compile = compileJoin(cfg, side)
	op.bind = func(p *program) windowing.Binding { return &joinBinding{program: p, joinRows: rows} }
	return op, nil
}

func parseJoinConfig(conf *service.ParsedConfig, name string) (cfg windowing.JoinConfig, err error) {
	cfg.Name = name
	for side, field := range sideFields {
		s := &cfg.Sides[side]
		if s.Source, err = conf.FieldString(field, fieldSource); err != nil {
			return cfg, err
		}
		if s.Key, err = conf.FieldString(field, fieldKey); err != nil {
			return cfg, err
		}
		if strings.TrimSpace(s.Key) == "" {
			return cfg, fmt.Errorf("%s.%s: must not be empty: give a Bloblang expression, such as this.id", field, fieldKey)
		}
	}
	if cfg.Sides[0].Source == cfg.Sides[1].Source {
		return cfg, fmt.Errorf("%s.%s and %s.%s: both are %q: %w", fieldLeft, fieldSource, fieldRight, fieldSource, cfg.Sides[0].Source, errSide)
	}
	kind, err := parseOption(conf, fieldType, windowing.JoinTypes[:]...)
	if err != nil {
		return cfg, err
	}
	cfg.Type = windowing.JoinType(slices.Index(windowing.JoinTypes[:], kind))
	if err := parseBounds(conf, &cfg); err != nil {
		return cfg, err
	}
	if cfg.MaxMatches, err = conf.FieldInt(fieldMaxMatches); err != nil {
		return cfg, err
	}
	switch {
	case cfg.MaxMatches < 0:
		return cfg, fmt.Errorf("max_matches: %d is not allowed: use 1 or more, or 0 for any number", cfg.MaxMatches)
	case cfg.MaxMatches > 0 && (cfg.Type == windowing.SemiJoin || cfg.Type == windowing.AntiJoin):
		return cfg, errMatches
	}
	late, err := parseOption(conf, fieldLate, "drop", "pass")
	cfg.PassLate = late == "pass"
	return cfg, err
}

func parseBounds(conf *service.ParsedConfig, cfg *windowing.JoinConfig) error {
	for _, b := range []struct {
		field, inclusive string
		to               *time.Duration
		excluded         *bool
	}{{fieldLower, fieldLowerInclusive, &cfg.Lower, &cfg.ExcludeLower}, {fieldUpper, fieldUpperInclusive, &cfg.Upper, &cfg.ExcludeUpper}} {
		d, err := parseSigned(conf, 0, b.field)
		if err != nil {
			return err
		}
		inclusive, err := conf.FieldBool(b.inclusive)
		if err != nil {
			return err
		}
		*b.to, *b.excluded = d, !inclusive
	}
	if cfg.Empty() {
		return fmt.Errorf("lower: %s and upper: %s: %w", cfg.Lower, cfg.Upper, errBounds)
	}
	return nil
}

func init() { register(kindJoin, joinSpec(), parseJoin) }
