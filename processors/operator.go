package processors

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// operator is an operator as its constructor parsed it, before it has a place in
// a chain.
type operator struct {
	kind     string
	name     string
	stage    windowing.Stage // without Binding
	compile  compiler
	looks    compiler // of the user's expressions alone; nil: compile does no more
	bind     func(p *program) windowing.Binding
	state    string // of its own, "" where the user set none
	memory   int64  // bytes of state in memory, 0: no limit
	position positionConfig
	sources  []string      // of a watermark
	delay    time.Duration // of a watermark: the largest of its sources
	// behind fits the operator to the nearest watermark before it in a host, alone
	// says what is wrong with one that stands on its own. Both may be nil.
	behind  func(w *operator) error
	alone   error
	doubt   string // of what behind has found, "" for none: said at the start
	idle    time.Duration
	early   bool // rows come out by the wall clock
	retimed bool // a watermark that takes the time that the row carries
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
		memoryBudgetField(),
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
	if op.memory, err = parseMemoryBudget(conf, op.state); err != nil {
		return nil, fmt.Errorf("%s %q: %w", kind, op.name, err)
	}
	if op.position, err = parsePosition(conf); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	if op.position.mode == host.Ordinal {
		return nil, fmt.Errorf("%s: %w", kind, errOrdinal)
	}
	op.stage = windowing.Stage{Name: op.name, Kind: kind}
	return op, nil
}

// Mistakes that the lint rule of the field finds too.
var (
	errNoDuration = errors.New("not a duration")
	errNegative   = errors.New("negative")
	errNoOption   = errors.New("not allowed")
)

// errNoState says that a state is nowhere.
var errNoState = errors.New("state: must not be empty: give the label of a bbolt cache, or the word memory")

// parseDuration reads a duration that must not be negative.
func parseDuration(conf *service.ParsedConfig, fallback time.Duration, field string) (time.Duration, error) {
	return readDuration(conf, fallback, field, false)
}

// parseSigned reads a duration.
func parseSigned(conf *service.ParsedConfig, fallback time.Duration, field string) (time.Duration, error) {
	return readDuration(conf, fallback, field, true)
}

func readDuration(conf *service.ParsedConfig, fallback time.Duration, field string, signed bool) (time.Duration, error) {
	if !conf.Contains(field) {
		return fallback, nil
	}
	text, err := conf.FieldString(field)
	if err != nil {
		return 0, err
	}
	return toDuration(field, text, signed)
}

func toDuration(field, text string, signed bool) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %q is %w: use a number with a unit, such as 250ms, 30s, 5m, 1h30m or 24h", field, text, errNoDuration)
	case d < 0 && !signed:
		return 0, fmt.Errorf("%s: %s is %w: use 0s or more", field, d, errNegative)
	}
	return d, nil
}

// durationLint says in lint what parseDuration and parseSigned say at the start.
func durationLint(field string, signed bool) string {
	about := lintDuration
	if signed {
		about = lintSigned
	}
	return fmt.Sprintf("root = this.%s(%q, %q)", lintMethod, about, field)
}

// optionField is a field that takes one of a few words.
func optionField(field string, allowed ...string) *service.ConfigField {
	return service.NewStringEnumField(field, allowed...).
		LintRule(fmt.Sprintf("root = this.%s(%q, %q)", lintMethod, lintOption, strings.Join(append([]string{field}, allowed...), " ")))
}

// parseOption reads a field that takes one of a few words. A start may leave lint
// out.
func parseOption(conf *service.ParsedConfig, field string, allowed ...string) (string, error) {
	word, err := conf.FieldString(field)
	if err != nil {
		return "", err
	}
	return word, checkOption(field, word, allowed)
}

func checkOption(field, word string, allowed []string) error {
	if slices.Contains(allowed, word) {
		return nil
	}
	return fmt.Errorf("%s: %q is %w: use %s", field, word, errNoOption, strings.Join(allowed, " or "))
}

// instant is the clock that a chain starts with.
func instant() watermark.Clock {
	c := clock()
	return watermark.Clock{Wall: c.Wall(), Mono: c.Mono()}
}
