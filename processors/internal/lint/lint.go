// Package lint makes lint rules that ask what a constructor asks, so that lint and
// start say the same in the same words. A rule is Bloblang, which knows nothing of
// durations, expressions and sizes, and has only the methods of packages that were
// initialised before its own: the method that a rule calls is registered here.
package lint

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
	"gopkg.in/yaml.v3"
)

// ErrElsewhere stands for a mistake that another lint finds: that of the spec, or of
// the rule of a field.
var ErrElsewhere = errors.New("there are other lints")

// Component is what a constructor knows of its configuration.
type Component struct {
	Spec  *service.ConfigSpec // nil: there is no such component
	Check func(*service.ParsedConfig) error
}

// Parse parses the plain value of a configuration by the spec and hands it to use. The
// error is that of use, or ErrElsewhere where the spec finds a mistake.
func (c Component) Parse(raw any, use func(*service.ParsedConfig) error) error {
	if c.Spec == nil {
		return ErrElsewhere
	}
	text, err := yaml.Marshal(raw)
	if err != nil {
		return ErrElsewhere
	}
	conf, err := c.Spec.ParseYAML(string(text), nil)
	if err != nil {
		if said := Mistyped(err); said != nil {
			return said
		}
		return ErrElsewhere
	}
	return use(conf)
}

var typed = regexp.MustCompile("field '(\\w+)'[^']*cannot unmarshal !!\\w+ `([^`]*)` into (\\w+)")

// wanted says what is allowed in fields of a type of Go.
var wanted = map[string]string{"bool": "true or false", "int": "a whole number", "int64": "a whole number", "float64": "a number"}

// Mistyped says what is wrong with a value of another type than that of its field, in
// the place of the error of Benthos; nil for another error. Benthos finds lists and
// objects, but says of a text in the place of a number only at the start, and does not
// ask the rule of the component itself: that of a host around it does.
func Mistyped(err error) error {
	m := typed.FindStringSubmatch(err.Error())
	if m == nil || wanted[m[3]] == "" {
		return nil
	}
	return fmt.Errorf("%s: %q is not allowed: use %s", m[1], m[2], wanted[m[3]])
}

// Rules are the components of a package whose lint rules call one method, by name. They
// are filled while packages are initialised, and only read after that.
type Rules struct {
	method     string
	silent     func(err error, raw any) bool
	components map[string]Component
}

// NewRules registers the method, whose name must be new to Bloblang; about completes
// "what is wrong with a configuration of". Mistakes that are silent, and ErrElsewhere,
// are left to others. It panics where the method cannot be registered.
func NewRules(method, about string, silent func(err error, raw any) bool) *Rules {
	r := &Rules{method: method, silent: silent, components: map[string]Component{}}
	spec := bloblang.NewPluginSpec().Description("For lint rules: what is wrong with a configuration of " + about + ".").
		Param(bloblang.NewStringParam("about"))
	err := bloblang.RegisterMethodV2(method, spec, func(args *bloblang.ParsedParams) (bloblang.Method, error) {
		name, err := args.GetString("about")
		return func(v any) (any, error) { return r.lints(name, v), nil }, err
	})
	if err != nil {
		panic(err)
	}
	return r
}

// Add adds the lint rule of a component to its spec.
func (r *Rules) Add(name string, c Component) {
	r.components[name] = c
	c.Spec.LintRule(fmt.Sprintf("root = this.%s(%q)", r.method, name))
}

func (r *Rules) lints(name string, raw any) []any {
	c := r.components[name]
	err := c.Parse(raw, c.Check)
	if err == nil || errors.Is(err, ErrElsewhere) || r.silent(err, raw) {
		return []any{}
	}
	return []any{err.Error()}
}
