package processors

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/internal/lint"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// lintMethod is what the lint rules of this package call. A rule is Bloblang,
// which knows nothing of durations, expressions and aggregates, and has only the
// methods of packages that were initialised before this one. The method asks what
// a constructor asks, so that lint and start say the same in the same words.
var lintMethod = registerLintMethod("windowed_lint")

// linters are what lintMethod asks, by the name of the component.
var linters = map[string]lint.Component{}

// What lintMethod is asked about a field.
const (
	lintDuration = "duration"
	lintSigned   = "signed duration"
	lintOption   = "option" // the field and the words, with spaces between them
)

// lintBy adds the lint rule of a component to its spec.
func lintBy(name string, spec *service.ConfigSpec, check func(*service.ParsedConfig) error) {
	linters[name] = lint.Component{Spec: spec, Check: check}
	spec.LintRule(fmt.Sprintf("root = this.%s(%q)", lintMethod, name))
}

func registerLintMethod(name string) string {
	spec := bloblang.NewPluginSpec().Description("For the lint rules of windowed components: what is wrong with a configuration.").
		Param(bloblang.NewStringParam("about")).Param(bloblang.NewStringParam("field").Default(""))
	must(bloblang.RegisterMethodV2(name, spec, func(args *bloblang.ParsedParams) (bloblang.Method, error) {
		about, err := args.GetString("about")
		if err != nil {
			return nil, err
		}
		field, err := args.GetString("field")
		return func(v any) (any, error) { return lintsOf(about, field, v), nil }, err
	}))
	return name
}

// lintsOf gives what is wrong with the configuration of a component, or of a
// field. What Benthos finds by the spec is left to it, and what the rule of a field
// finds to that.
func lintsOf(about, field string, v any) []any {
	var err error
	switch about {
	case lintDuration, lintSigned:
		_, err = toDuration(field, fmt.Sprint(v), about == lintSigned)
		if err != nil {
			return []any{err.Error()}
		}
	case lintOption:
		words := strings.Fields(field)
		if err = checkOption(words[0], fmt.Sprint(v), words[1:]); err != nil {
			return []any{err.Error()}
		}
	default:
		if err = lintShape(about, v); err == nil {
			err = linters[about].Parse(v, linters[about].Check)
		}
	}
	for _, said := range []error{nil, lint.ErrElsewhere, errNoDuration, errNegative, errNoOption} {
		if errors.Is(err, said) {
			return []any{}
		}
	}
	return []any{err.Error()}
}

// lintShape finds mistakes of which Benthos says nothing.
func lintShape(about string, v any) error {
	fields, _ := v.(map[string]any)
	if _, ok := fields[fieldInput]; fields != nil && !ok && about == "input "+nameWindowed {
		return errNoInput
	}
	return nil
}

// errNoInput refuses a windowed input without an input.
var errNoInput = errors.New("input: is missing: name the input whose messages are read, as in input: { stdin: {} }")

// lintHost checks the fields of a host and how the operators in its list stand to
// each other.
func lintHost(conf *service.ParsedConfig) error {
	c, err := parseHost(conf)
	if err != nil {
		return err
	}
	if _, err := newPositioner(c.position); err != nil {
		return err
	}
	raw, err := conf.FieldAny(fieldProcessors)
	if err != nil {
		return err
	}
	list, _ := plain(raw).([]any)
	if len(list) == 0 {
		return errNoProcessors
	}
	b := newBuilt(conf, 0)
	var stages []windowing.Stage
	var elsewhere error
	for i, element := range list {
		st, err := b.lintElement(i, element)
		switch {
		case errors.Is(err, lint.ErrElsewhere):
			elsewhere = err
		case err != nil:
			return err
		}
		stages = append(stages, st)
	}
	if elsewhere != nil {
		return elsewhere
	}
	_, err = windowing.NewChain(windowing.Config{Stages: stages, Start: instant()})
	return err
}

func (b *built) lintElement(i int, element any) (st windowing.Stage, err error) {
	name := kindOf(element)
	if name == "" {
		if inner := search(element, insideHost); len(inner) > 0 {
			return st, nested(inner[0], i)
		}
		return windowing.Stage{Foreign: true}, nil
	}
	err = linters[name].Parse(element.(map[string]any)[name], func(conf *service.ParsedConfig) error {
		op, err := kinds[name](conf)
		if err != nil {
			return lint.ErrElsewhere
		}
		if err := b.admit(op); err != nil {
			return err
		}
		b.operators = append(b.operators, op)
		st = op.stage
		return nil
	})
	return st, err
}

// insideHost names a component that must not be nested in a host's list.
func insideHost(element map[string]any) string {
	if _, host := element[nameWindowed]; host {
		return nameWindowed
	}
	return kindOf(element)
}
