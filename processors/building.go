package processors

import (
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"gopkg.in/yaml.v3"

	"github.com/connect-windowed/connect-windowed/windowing"
)

// fieldProcessors is the list of a host.
const fieldProcessors = "processors"

// kinds are the operators, by the name of their processor. Each file of an
// operator adds its own.
var kinds = map[string]func(*service.ParsedConfig) (*operator, error){}

// building is the chain under construction. A child is not told its parent, so
// the operators that are constructed while a host builds its list report here.
//
// mutex protects building for as long as one chain is built; current is read by
// constructors of operators on the goroutine that holds it.
var (
	buildingMutex sync.Mutex
	building      *nursery
)

// nursery collects what a host's children say of themselves.
type nursery struct {
	operators []*operator
	hosts     int
}

// built is a chain with what its host needs beside it.
type built struct {
	chain     *windowing.Chain
	operators []*operator
	foreign   *foreign
	lag       time.Duration
}

// buildChain makes the chain of a host from its processors list.
func buildChain(conf *service.ParsedConfig) (*built, error) {
	raw, err := conf.FieldAny(fieldProcessors)
	if err != nil {
		return nil, err
	}
	list, _ := plain(raw).([]any)
	owned, nest, err := construct(conf)
	if err != nil {
		return nil, err
	}
	b, err := arrange(list, owned, nest)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// construct has Benthos construct the list while operators report to a nursery.
func construct(conf *service.ParsedConfig) ([]*service.OwnedProcessor, *nursery, error) {
	buildingMutex.Lock()
	defer buildingMutex.Unlock()
	if building != nil {
		return nil, nil, errNested
	}
	nest := &nursery{}
	building = nest
	defer func() { building = nil }()
	owned, err := conf.FieldProcessorList(fieldProcessors)
	return owned, nest, err
}

// arrange puts operators and foreign processors into the order of the list, and
// refuses operators that are not direct children.
func arrange(list []any, owned []*service.OwnedProcessor, nest *nursery) (*built, error) {
	if nest.hosts > 0 {
		return nil, errNested
	}
	b := &built{foreign: &foreign{}}
	var stages []windowing.Stage
	timed := false
	next := 0
	for i, raw := range list {
		kind, nested := inspect(raw)
		if kind == "" {
			if nested != "" {
				return nil, fmt.Errorf("%s: %s is nested in another processor at index %d: it would see only a part of the rows; put it directly into the list and let others stand before and behind it", fieldProcessors, nested, i)
			}
			stages = append(stages, windowing.Stage{Foreign: true})
			b.foreign.add(owned[i], timed)
			continue
		}
		if next >= len(nest.operators) || nest.operators[next].kind != kind {
			return nil, errNested
		}
		op := nest.operators[next]
		next++
		if err := op.hosted(); err != nil {
			return nil, err
		}
		timed = timed || op.stage.Watermark != nil
		b.lag = max(b.lag, op.idle)
		b.operators = append(b.operators, op)
		stages = append(stages, op.stage)
		b.foreign.add(nil, timed)
	}
	if next != len(nest.operators) {
		return nil, errNested
	}
	return b, b.link(stages)
}

func (f *foreign) add(p *service.OwnedProcessor, timed bool) {
	f.processors = append(f.processors, p)
	f.timed = append(f.timed, timed)
}

// hosted refuses what belongs to the host.
func (op *operator) hosted() error {
	if op.state != "" {
		return fmt.Errorf("%s %q: state belongs to the host here: set it there and remove it from the operator", op.kind, op.name)
	}
	if op.position.explicit {
		return fmt.Errorf("%s %q: position belongs to the host here: set it there and remove it from the operator", op.kind, op.name)
	}
	return nil
}

// link compiles the expressions and makes the chain. The leading operators up to
// the first stateful one see the same messages: their expressions are evaluated
// together, ahead of the step.
func (b *built) link(stages []windowing.Stage) error {
	var lead []compiler
	leading, next := true, 0
	for i := range stages {
		if stages[i].Foreign {
			leading = false
			continue
		}
		op := b.operators[next]
		next++
		p, err := newProgram(op.compile)
		if err != nil {
			return fmt.Errorf("%s %q: %w", op.kind, op.name, err)
		}
		stages[i].Binding = op.bind(p)
		if leading {
			lead = append(lead, op.compile)
			leading = stages[i].Operator == nil
		}
	}
	cfg := windowing.Config{Stages: stages, Lead: len(lead), Start: instant()}
	if len(lead) > 0 {
		p, err := newProgram(lead...)
		if err != nil {
			return err
		}
		cfg.Prepare = p.extract
	}
	var err error
	b.chain, err = windowing.NewChain(cfg)
	return err
}

// inspect says whether an element of a processors list is an operator, and which
// operator or host is nested in it otherwise.
func inspect(raw any) (kind, nested string) {
	m, _ := raw.(map[string]any)
	for key := range m {
		if _, ok := kinds[key]; ok {
			return key, ""
		}
	}
	return "", search(raw)
}

// search finds an operator or a host somewhere in a configuration.
func search(raw any) string {
	switch v := raw.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			if _, ok := kinds[key]; ok {
				if _, isConfig := v[key].(map[string]any); isConfig {
					return key
				}
			}
			if found := search(v[key]); found != "" {
				return found
			}
		}
	case []any:
		for _, e := range v {
			if found := search(e); found != "" {
				return found
			}
		}
	}
	return ""
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

// register makes a kind of operator known: as a processor, and to hosts.
func register(kind string, spec *service.ConfigSpec, parse func(*service.ParsedConfig) (*operator, error)) {
	kinds[kind] = parse
	must(service.RegisterBatchProcessor(kind, spec, func(conf *service.ParsedConfig, res *service.Resources) (service.BatchProcessor, error) {
		op, err := parse(conf)
		if err != nil {
			return nil, err
		}
		if building != nil {
			building.operators = append(building.operators, op)
			return hostedProcessor{}, nil
		}
		return newStandalone(op, res)
	}))
}

// must is for registrations: a name that the framework refuses is a mistake of
// the program.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
