package sql

import (
	"errors"
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
	"gopkg.in/yaml.v3"
)

// lintMethod is what the lint rules of this package call, so that lint and start
// say the same in the same words: a rule is Bloblang, which cannot ask what a
// constructor asks.
const lintMethod = "sql_output_lint"

// errLinted marks a mistake that the lint of a field finds by itself.
var errLinted = errors.New("the mapping does not parse")

// linters are what lintMethod asks, by the name of the output.
var linters = map[string]linter{}

type linter struct {
	spec  *service.ConfigSpec
	check func(*service.ParsedConfig) error
}

// lintBy adds the lint rule of an output to its spec.
func lintBy(name string, spec *service.ConfigSpec, check func(*service.ParsedConfig) error) {
	linters[name] = linter{spec, check}
	spec.LintRule(fmt.Sprintf("root = this.%s(%q)", lintMethod, name))
}

func registerLintMethod() error {
	spec := bloblang.NewPluginSpec().
		Description("For the lint rules of the sql outputs: what is wrong with a configuration.").
		Param(bloblang.NewStringParam("about"))
	return bloblang.RegisterMethodV2(lintMethod, spec, func(args *bloblang.ParsedParams) (bloblang.Method, error) {
		about, err := args.GetString("about")
		return func(v any) (any, error) { return linters[about].lints(v), nil }, err
	})
}

// lints gives what is wrong with the plain value of a configuration. What Benthos
// finds by the spec is left to it.
func (l linter) lints(raw any) []any {
	text, err := yaml.Marshal(raw)
	if err != nil {
		return []any{}
	}
	conf, err := l.spec.ParseYAML(string(text), nil)
	if err != nil {
		return []any{}
	}
	if err := l.check(conf); err != nil && !errors.Is(err, errLinted) {
		return []any{err.Error()}
	}
	return []any{}
}
