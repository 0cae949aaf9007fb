package processors

import (
	"fmt"
	"maps"
	"slices"

	"github.com/redpanda-data/benthos/v4/public/service"
	"gopkg.in/yaml.v3"
)

// kinds are the operators, by the name of their processor. Each file of an
// operator adds its own.
var kinds = map[string]func(*service.ParsedConfig) (*operator, error){}

// register makes a kind of operator known: as a processor, to hosts and to lint.
func register(kind string, spec *service.ConfigSpec, parse func(*service.ParsedConfig) (*operator, error)) {
	kinds[kind] = parse
	lintBy(kind, spec, func(conf *service.ParsedConfig) error {
		op, err := parse(conf)
		if err != nil {
			return err
		}
		return op.try()
	})
	must(service.RegisterBatchProcessor(kind, spec, func(conf *service.ParsedConfig, res *service.Resources) (service.BatchProcessor, error) {
		op, err := parse(conf)
		if err != nil {
			return nil, err
		}
		if p, inside, err := operatorInside(op); inside {
			return p, err
		}
		return newStandalone(op, res)
	}))
}

// try compiles the expressions.
func (op *operator) try() error {
	if _, err := newProgram(op.compile); err != nil {
		return fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	if _, err := newPositioner(op.position); err != nil {
		return fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	return nil
}

// kindOf gives the kind of operator that an element of a processors list is, ""
// where it is none.
func kindOf(element any) string {
	m, _ := element.(map[string]any)
	if name, ok := m["type"].(string); ok {
		if _, ok := kinds[name]; ok {
			return name
		}
	}
	for name := range m {
		if _, ok := kinds[name]; ok {
			return name
		}
	}
	return ""
}

// search gives what find says of an element of a list and of the elements of the
// lists inside of it, which is where processors stand.
func search(element any, find func(m map[string]any) string) (found []string) {
	m, ok := element.(map[string]any)
	if !ok {
		return nil
	}
	if s := find(m); s != "" {
		found = append(found, s)
	}
	return append(found, searchBelow(m, find)...)
}

func searchBelow(raw any, find func(m map[string]any) string) (found []string) {
	switch v := raw.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = append(found, searchBelow(v[key], find)...)
		}
	case []any:
		for _, e := range v {
			found = append(found, search(e, find)...)
			if _, list := e.([]any); list {
				found = append(found, searchBelow(e, find)...)
			}
		}
	}
	return found
}

// plain turns what Benthos keeps of a raw configuration into maps and lists.
func plain(raw any) any {
	switch v := raw.(type) {
	case *yaml.Node:
		var out any
		if err := v.Decode(&out); err != nil {
			return nil
		}
		return out
	case yaml.Node:
		return plain(&v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	}
	return raw
}

// must is for registrations: a name that the framework refuses is a mistake of
// the program.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
