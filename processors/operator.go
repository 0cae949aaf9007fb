package processors

import (
	"errors"
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// operator is an operator as its constructor parsed it, before it has a place in
// a chain.
type operator struct {
	kind     string
	name     string
	stage    windowing.Stage // without Binding
	compile  compiler
	bind     func(p *program) windowing.Binding
	state    string // of its own, "" where the user set none
	position positionConfig
	sources  []string // of a watermark
	idle     time.Duration
	retimed  bool // a watermark that takes the time that the row carries
}

// Fields that operators share.
const (
	fieldName  = "name"
	fieldState = "state"
	fieldLate  = "late"
)

// memory is the word for state in memory.
const memory = "memory"

// commonFields are the fields of every operator.
func commonFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringField(fieldName).Description("The identity of the operator's state, part of every row key. Unique in its chain. The operator's kind by default.").Optional().Advanced(),
		stateField("For an operator that stands on its own; inside of a host the host has it.").Optional().Advanced(),
		positionField().Advanced(),
	}
}

func stateField(extra string) *service.ConfigField {
	return service.NewStringField(fieldState).
		Description("The label of a `bbolt` cache that holds the state, or the word `memory`. " + extra)
}

// parseCommon reads the fields of every operator.
func parseCommon(conf *service.ParsedConfig, kind string) (op *operator, err error) {
	op = &operator{kind: kind, name: kind}
	if conf.Contains(fieldName) {
		if op.name, err = conf.FieldString(fieldName); err != nil {
			return nil, err
		}
		if op.name == "" {
			return nil, fmt.Errorf("%s: name must not be empty: leave it out for %q", kind, kind)
		}
	}
	if conf.Contains(fieldState) {
		if op.state, err = conf.FieldString(fieldState); err != nil {
			return nil, err
		}
		if op.state == "" {
			return nil, fmt.Errorf("%s: %w", kind, errNoState)
		}
	}
	if op.position, err = parsePosition(conf); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	op.stage = windowing.Stage{Name: op.name, Kind: kind}
	return op, nil
}

// Mistakes in a duration, which the lint rule of the field finds too.
var (
	errNoDuration = errors.New("not a duration")
	errNegative   = errors.New("negative")
)

// errNoState says that a state is nowhere.
var errNoState = errors.New("state: must not be empty: give the label of a bbolt cache, or the word memory")

// parseDuration reads a duration that must not be negative.
func parseDuration(conf *service.ParsedConfig, fallback time.Duration, path ...string) (time.Duration, error) {
	d, err := parseSigned(conf, fallback, path...)
	if err == nil && d < 0 {
		return 0, fmt.Errorf("%s: %s is %w: use 0s or more", path[len(path)-1], d, errNegative)
	}
	return d, err
}

// parseSigned reads a duration.
func parseSigned(conf *service.ParsedConfig, fallback time.Duration, path ...string) (time.Duration, error) {
	if !conf.Contains(path...) {
		return fallback, nil
	}
	text, err := conf.FieldString(path...)
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is %w: use a number with a unit, such as 250ms, 30s, 5m or 1h30m", path[len(path)-1], text, errNoDuration)
	}
	return d, nil
}

// durationText is what time.ParseDuration accepts, for lint rules, whose Bloblang
// has no method for durations.
const durationText = `^[-+]?((([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+|0)$`

// durationLint says in lint what parseDuration and parseSigned say at the start.
func durationLint(field string, signed bool) string {
	rule := fmt.Sprintf("root = if !this.string().re_match(%q) { [ %q + this.string() + %q ] }",
		durationText, field+": ", " is not a duration: use a number with a unit, such as 250ms, 30s, 5m or 1h30m")
	if !signed {
		rule += fmt.Sprintf(" else if this.string().has_prefix(\"-\") { [ %q + this.string() + %q ] }", field+": ", " is negative: use 0s or more")
	}
	return rule + " else { [] }"
}

// instant is the clock that a chain starts with.
func instant() watermark.Clock {
	c := clock()
	return watermark.Clock{Wall: c.Wall(), Mono: c.Mono()}
}
