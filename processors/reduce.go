package processors

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/bloblang"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// reducer implements agg.Reducer with the Bloblang of a `reduce` call. The
// expressions see an object with what they work on, and nothing of a message:
// an accumulator outlives the messages that went into it.
type reducer struct {
	init, add, merge, result *bloblang.Executor
}

// bindReducer compiles the expressions of a `reduce` call, and leaves every other
// call as it is. The error names the option.
func bindReducer(call *agg.Call) error {
	if call.Function.Name != "reduce" {
		return nil
	}
	r := &reducer{}
	for _, option := range []struct {
		name string
		exec **bloblang.Executor
	}{{"init", &r.init}, {"add", &r.add}, {"merge", &r.merge}, {"result", &r.result}} {
		text := call.Param(option.name)
		if text.IsNull() {
			continue // result is optional
		}
		exec, err := compileReduction(text.AsString())
		if err != nil {
			return fmt.Errorf("reduce: %s: %w", option.name, err)
		}
		*option.exec = exec
	}
	call.Reducer = r
	return nil
}

// compileReduction compiles one expression. Only as part of an object does a value
// come back as what it is; the line break ends a comment.
func compileReduction(text string) (*bloblang.Executor, error) {
	if _, err := bloblang.GlobalEnvironment().Parse("root = " + text); err != nil {
		return nil, fmt.Errorf("%.200q is not a Bloblang expression: %w", text, err)
	}
	exec, err := bloblang.GlobalEnvironment().Parse("root = {\"v\": (" + text + "\n)}")
	if err != nil {
		return nil, fmt.Errorf("%.200q is not a Bloblang expression: %w", text, err)
	}
	return exec, nil
}

// Init implements agg.Reducer.
func (r *reducer) Init() (agg.Value, error) { return reduce(r.init, map[string]any{}) }

// Add implements agg.Reducer.
func (r *reducer) Add(acc, value agg.Value) (agg.Value, error) {
	return reduce(r.add, map[string]any{"acc": acc.Any(), "value": value.Any()})
}

// Merge implements agg.Reducer.
func (r *reducer) Merge(left, right agg.Value) (agg.Value, error) {
	return reduce(r.merge, map[string]any{"left": left.Any(), "right": right.Any()})
}

// Result implements agg.Reducer.
func (r *reducer) Result(acc agg.Value) (agg.Value, error) {
	if r.result == nil {
		return acc, nil
	}
	return reduce(r.result, map[string]any{"acc": acc.Any()})
}

// reduce evaluates one expression. What it deletes, or does not set, is null.
func reduce(exec *bloblang.Executor, this map[string]any) (agg.Value, error) {
	out, err := exec.Query(this)
	if err != nil {
		return agg.Null(), err
	}
	object, ok := out.(map[string]any)
	if !ok { // cannot be: the expression is an object
		return agg.Null(), fmt.Errorf("unexpected result %T", out)
	}
	return agg.FromAny(object["v"])
}
