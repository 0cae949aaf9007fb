package drive

import (
	"encoding/json"
	"slices"
)

// Setup is what a form wraps into a configuration.
type Setup struct {
	Processors []json.RawMessage
	Position   json.RawMessage // of the host, nil: messages carry none
	OnEnd      string
	StateFile  string // "": state in memory
	Tight      bool   // with a StateFile: everything on disk leaves memory
	Late       string // set on every operator that has the field, "" leaves it
}

// Form is a place where the operators can stand.
type Form struct {
	Name string
	// Clocked forms act when time passes without a message and know the end of
	// the input.
	Clocked bool
	// Settled forms have handed over every row of a batch when its source hears
	// that the batch is acknowledged.
	Settled bool
	// Alone: there is no host, every operator is a chain of its own.
	Alone bool
	build func(s Setup, feed map[string]any) map[string]any
}

// Build gives the configuration of a pipeline in this form.
func (f Form) Build(s Setup) func(feed, sink map[string]any) map[string]any {
	return func(feed, sink map[string]any) map[string]any {
		conf := f.build(s, feed)
		conf["output"] = sink
		if s.StateFile != "" {
			conf["cache_resources"] = []any{map[string]any{"label": "state", "bbolt": map[string]any{"path": s.StateFile}}}
		}
		return conf
	}
}

// The forms.
var (
	InputHost = Form{Name: "input windowed", Clocked: true, build: func(s Setup, feed map[string]any) map[string]any {
		host := hosted(s)
		host["input"] = feed
		if s.OnEnd != "" {
			host["on_end"] = s.OnEnd
		}
		if s.Position != nil {
			host["position"] = s.Position
		}
		return map[string]any{"input": map[string]any{"windowed": host}}
	}}
	ProcessorHost = Form{Name: "processor windowed", Settled: true, build: func(s Setup, feed map[string]any) map[string]any {
		host := hosted(s)
		host["position"] = position(s)
		return map[string]any{"input": feed, "pipeline": pipeline(map[string]any{"windowed": host})}
	}}
	Standalone = Form{Name: "operators", Settled: true, Alone: true, build: func(s Setup, feed map[string]any) map[string]any {
		return map[string]any{"input": feed, "pipeline": pipeline(alone(s)...)}
	}}
	StandaloneInput = Form{Name: "operators in input", Settled: true, Alone: true, build: func(s Setup, feed map[string]any) map[string]any {
		feed["processors"] = alone(s)
		return map[string]any{"input": feed}
	}}
)

// FormOf is a pipeline without operators of the product, for comparison.
func FormOf(name string, build func(feed map[string]any) map[string]any) Form {
	return Form{Name: name, build: func(_ Setup, feed map[string]any) map[string]any { return build(feed) }}
}

// Forms are all of them.
func Forms() []Form { return []Form{InputHost, ProcessorHost, Standalone, StandaloneInput} }

// pipeline runs processors on one thread, so that batches stay in their order.
func pipeline(processors ...any) map[string]any {
	return map[string]any{"threads": 1, "processors": processors}
}

func hosted(s Setup) map[string]any {
	var list []any
	for _, raw := range s.Processors {
		_, operator := operatorOf(raw, s)
		list = append(list, operator)
	}
	host := map[string]any{"processors": list, "state": "memory"}
	if s.StateFile != "" {
		host["state"] = "state"
		if s.Tight {
			host["memory_budget"] = tight
		}
	}
	return host
}

// tight is a memory budget of next to nothing.
const tight = "1KiB"

func position(s Setup) any {
	if s.Position != nil {
		return s.Position
	}
	return "none"
}

// alone gives each operator what a host has otherwise: a state and positions.
func alone(s Setup) []any {
	var list []any
	for _, raw := range s.Processors {
		fields, operator := operatorOf(raw, s)
		if fields != nil && s.StateFile != "" {
			fields["state"] = "state"
			if s.Tight {
				fields["memory_budget"] = tight
			}
		}
		if fields != nil && (s.StateFile != "" || s.Position != nil) {
			fields["position"] = position(s)
		}
		list = append(list, operator)
	}
	return list
}

// operators are the processors of the product, with the fields that only some of
// them have.
var operators = map[string]struct{ late bool }{
	"watermark":         {},
	"tumbling_window":   {late: true},
	"sliding_window":    {late: true},
	"cumulative_window": {late: true},
	"session_window":    {late: true},
	"interval_join":     {late: true},
	"watermark_dedupe":  {late: true},
	"keyed_state":       {late: true},
}

// operatorOf gives a processor of the list to be changed, and its fields where it
// is one of the product's.
func operatorOf(raw json.RawMessage, s Setup) (fields map[string]any, processor map[string]any) {
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(raw, &outer); err != nil {
		panic(err)
	}
	processor = map[string]any{}
	for kind, body := range outer {
		processor[kind] = body
		what, ours := operators[kind]
		if !ours {
			continue
		}
		var parsed map[string]json.RawMessage
		if err := json.Unmarshal(body, &parsed); err != nil {
			panic(err)
		}
		fields = map[string]any{}
		for name, value := range parsed {
			fields[name] = value
		}
		if what.late && s.Late != "" {
			fields["late"] = s.Late
		}
		processor[kind] = fields
	}
	return fields, processor
}

// Kinds gives the kinds of the processors of a list, in its order.
func Kinds(list []json.RawMessage) (kinds []string) {
	for _, raw := range list {
		var outer map[string]json.RawMessage
		if err := json.Unmarshal(raw, &outer); err != nil {
			panic(err)
		}
		for kind := range outer {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// HasOperator says whether one of the kinds is in the list.
func HasOperator(list []json.RawMessage, kind string) bool { return slices.Contains(Kinds(list), kind) }
