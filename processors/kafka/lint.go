package kafka

import (
	"errors"
	"fmt"
	"slices"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
	"gopkg.in/yaml.v3"
)

// lintMethod is what the lint rules call: rules are Bloblang, which knows nothing
// of topic lists and sizes. It asks what a constructor asks, so that lint and
// start say the same in the same words.
var lintMethod = registerLintMethod("redpanda_lint")

// linters are what lintMethod asks, by input or output.
var linters = map[string]linter{}

type linter struct {
	spec  *service.ConfigSpec
	check func(*service.ParsedConfig) error
}

func lintBy(kind string, spec *service.ConfigSpec, check func(*service.ParsedConfig) error) {
	linters[kind] = linter{spec, check}
	spec.LintRule(fmt.Sprintf("root = this.%s(%q)", lintMethod, kind))
}

func registerLintMethod(name string) string {
	spec := bloblang.NewPluginSpec().Description("For the lint rules of redpanda components: what is wrong with a configuration.").
		Param(bloblang.NewStringParam("kind"))
	must(bloblang.RegisterMethodV2(name, spec, func(args *bloblang.ParsedParams) (bloblang.Method, error) {
		kind, err := args.GetString("kind")
		return func(v any) (any, error) { return lints(kind, v), nil }, err
	}))
	return name
}

// lints gives what is wrong with a configuration. What Benthos finds by the spec
// and by the rules of fields is left to it.
func lints(kind string, v any) []any {
	text, err := yaml.Marshal(v)
	if err != nil {
		return []any{}
	}
	l := linters[kind]
	if l.spec == nil {
		return []any{}
	}
	conf, err := l.spec.ParseYAML(string(text), nil)
	if err != nil {
		return []any{}
	}
	switch err := l.check(conf); {
	case err == nil, errors.Is(err, errNoChoice):
	case errors.Is(err, errNothing) && blank(v):
		// of a variable that lint was told not to ask for
	default:
		return []any{err.Error()}
	}
	return []any{}
}

// blank reports that a field is there which must not be empty, but is.
func blank(v any) bool {
	fields, _ := v.(map[string]any)
	for _, name := range []string{fieldBrokers, fieldTopics, fieldGroup, fieldTopic} {
		switch v := fields[name].(type) {
		case string:
			if v == "" {
				return true
			}
		case []any:
			if slices.Contains(v, any("")) {
				return true
			}
		}
	}
	return false
}

// errNothing marks a mistake that a value brings about which is empty.
var errNothing = errors.New("is missing")

func must(err error) {
	if err != nil {
		panic(err)
	}
}
