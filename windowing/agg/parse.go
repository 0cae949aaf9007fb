package agg

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrCall: the text of an aggregate that is no call of a known function.
var ErrCall = errors.New("bad aggregate")

// Call is one aggregate of a definition. It is never changed after Parse, but
// for the Reducer of a reduce.
type Call struct {
	Function *Function
	Exprs    []string // Bloblang of the value arguments
	Where    string   // Bloblang; the row counts where it is true. "": every row
	Params   []Value  // one for each of Function.Options, defaults filled in; expressions as String
	Text     string   // canonical, part of the definition of the state
	Reducer  Reducer  // set by the caller before New, for reduce only

	limit, limitBytes int64 // options of that name, 0 where there is none
	shared            any   // what Function.prepare computed
}

// Param is the constant of an option, or its expression as a String; null for
// an unknown name.
func (c *Call) Param(name string) Value {
	for i := range c.Function.Options {
		if c.Function.Options[i].Name == name {
			return c.Params[i]
		}
	}
	return Value{}
}

// Parse reads `function(expression, options)`. Options are `name: constant`;
// those that are required may stand without their name behind the expressions,
// and `where: expression` chooses rows. The error wraps ErrCall and names the
// text, what is wrong, what is allowed and, for a slip, the nearest name.
func Parse(text string) (*Call, error) {
	c, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w %.200q: %w", ErrCall, strings.TrimSpace(text), err)
	}
	return c, nil
}

func parse(text string) (*Call, error) {
	name, list, found := strings.Cut(text, "(")
	name = strings.TrimSpace(name)
	f, err := find(name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("the parentheses are missing: write %s", f.Usage())
	}
	s := scanner{text: list}
	args, rest, err := s.arguments()
	if err != nil {
		return nil, err
	}
	if rest = strings.TrimSpace(rest); rest != "" && rest[0] != '#' {
		return nil, fmt.Errorf("%.40q stands behind the call; compute with results in a mapping behind the operator", rest)
	}
	c := &Call{Function: f, Params: make([]Value, len(f.Options))}
	for _, a := range args {
		if err := c.take(a); err != nil {
			return nil, err
		}
	}
	return c, c.complete()
}

// take puts one argument in its place. Positional ones come first: the value
// expressions, then the required options in the order of the table.
func (c *Call) take(a argument) error {
	switch {
	case a.text == "" && a.name == "":
		return fmt.Errorf("an argument is empty; write %s", c.Function.Usage())
	case a.text == "":
		return fmt.Errorf("the option %s has no value", a.name)
	case a.name == "where":
		if c.Where != "" {
			return errors.New("the option where is there twice")
		}
		c.Where = a.text
		return nil
	case a.name != "":
		return c.option(a.name, a.text)
	case len(c.Exprs) < len(c.Function.Args):
		c.Exprs = append(c.Exprs, a.text)
		return nil
	}
	for i, o := range c.Function.Options {
		if o.Default.IsNull() && o.Kind != OptionExpression && c.Params[i].IsNull() {
			return c.option(o.Name, a.text)
		}
	}
	return fmt.Errorf("%.40q is one argument too many; write %s", a.text, c.Function.Usage())
}

func (c *Call) option(name, text string) error {
	names := []string{"where"}
	for i := range c.Function.Options {
		o := &c.Function.Options[i]
		if o.Name != name {
			names = append(names, o.Name)
			continue
		}
		if !c.Params[i].IsNull() {
			return fmt.Errorf("the option %s is there twice", name)
		}
		v, err := o.parse(text)
		c.Params[i] = v
		return err
	}
	return fmt.Errorf("unknown option %s%s; allowed for %s: %s", name, didYouMean(name, names), c.Function.Name, strings.Join(names, ", "))
}

// complete fills in the defaults, looks for what is missing, and writes Text.
func (c *Call) complete() error {
	if len(c.Exprs) < c.Function.MinArgs {
		return fmt.Errorf("the argument %s is missing; write %s", c.Function.Args[len(c.Exprs)], c.Function.Usage())
	}
	parts := slices.Clone(c.Exprs)
	for i := range c.Function.Options {
		o := &c.Function.Options[i]
		if c.Params[i].IsNull() {
			c.Params[i] = o.Default
		}
		if c.Params[i].IsNull() && !o.Optional {
			return fmt.Errorf("the option %s is missing: %s; write %s", o.Name, o.allowed(), c.Function.Usage())
		}
		if !o.Tuning && !c.Params[i].IsNull() {
			parts = append(parts, o.Name+": "+paramText(c.Params[i]))
		}
	}
	if c.Where != "" {
		parts = append(parts, "where: "+c.Where)
	}
	c.Text = c.Function.Name + "(" + strings.Join(parts, ", ") + ")"
	c.limit, c.limitBytes = c.Param("limit").AsInt(), c.Param("limit_bytes").AsInt()
	if c.Function.prepare != nil {
		return c.Function.prepare(c)
	}
	return nil
}

func paramText(v Value) string {
	if v.Kind() == KindString {
		return v.AsString()
	}
	return string(v.AppendJSON(nil))
}
