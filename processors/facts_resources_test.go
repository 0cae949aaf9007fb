package processors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

// cache is a cache that holds nothing.
type cache struct{ _ int }

func (*cache) Get(context.Context, string) ([]byte, error)               { return nil, service.ErrKeyNotFound }
func (*cache) Set(context.Context, string, []byte, *time.Duration) error { return nil }
func (*cache) Add(context.Context, string, []byte, *time.Duration) error { return nil }
func (*cache) Delete(context.Context, string) error                      { return nil }
func (*cache) Close(context.Context) error                               { return nil }

// asks runs a stream with a processor whose constructor calls ask, and with these
// resources.
func asks(t *testing.T, resources string, ask func(res *service.Resources)) {
	t.Helper()
	conf := plug(t, pluginProcessor, func(_ *service.ParsedConfig, res *service.Resources) (any, error) {
		ask(res)
		return &processor{}, nil
	})
	require.NoError(t, runStream(t, fmt.Sprintf(`
input: { generate: { count: 1, mapping: 'root = 1' } }
pipeline: { processors: [ %s ] }
output: { drop: {} }
%s
`, conf, resources)))
}

// A cache is made when it is asked for first, is handed out as a wrapper that
// hides its type, and what its constructor left in the generic values is there
// for everybody.
func TestFactCachesAreLazyAndWrapped(t *testing.T) {
	type key struct{}
	made := 0
	conf := plug(t, pluginCache, func(_ *service.ParsedConfig, res *service.Resources) (any, error) {
		made++
		res.SetGeneric(key{}, res.Label())
		return &cache{}, nil
	})
	asks(t, "cache_resources: [ { label: state, "+conf[1:]+" ]", func(res *service.Resources) {
		require.True(t, res.HasCache("state"))
		require.False(t, res.HasCache("other"))
		require.Zero(t, made)
		_, known := res.GetGeneric(key{})
		require.False(t, known)
		require.NoError(t, res.AccessCache(context.Background(), "state", func(c service.Cache) {
			_, ours := c.(*cache)
			require.False(t, ours)
		}))
		require.Equal(t, 1, made)
		label, _ := res.GetGeneric(key{})
		require.Equal(t, "state", label)
		require.Error(t, res.AccessCache(context.Background(), "other", func(service.Cache) {}))
	})
}

// A processor resource is made when it is asked for first, on the goroutine that
// asks; one whose constructor fails is tried again.
func TestFactProcessorResourcesAreLazy(t *testing.T) {
	here, made := "", 0
	conf := plug(t, pluginProcessor, func(*service.ParsedConfig, *service.Resources) (any, error) {
		require.Equal(t, here, stackOf())
		if made++; made == 1 {
			return nil, errTest
		}
		return &processor{}, nil
	})
	asks(t, "processor_resources: [ { label: inner, "+conf[1:]+", { label: outer, try: [ { resource: inner } ] } ]", func(res *service.Resources) {
		here = stackOf()
		require.NoError(t, res.AccessProcessor(context.Background(), "outer", func(*service.ResourceProcessor) {}))
		require.Zero(t, made, "a resource that names another does not make it")
		require.ErrorIs(t, res.AccessProcessor(context.Background(), "inner", func(*service.ResourceProcessor) {}), errTest)
		require.NoError(t, res.AccessProcessor(context.Background(), "inner", func(*service.ResourceProcessor) {}))
		require.NoError(t, res.AccessProcessor(context.Background(), "inner", func(*service.ResourceProcessor) {}))
		require.Equal(t, 2, made)
	})
}

// The stream's labels of a metric, and a metric made again, are the same metric.
func TestFactMetricsMadeTwiceAreOne(t *testing.T) {
	conf := plug(t, pluginProcessor, func(_ *service.ParsedConfig, res *service.Resources) (any, error) {
		for range 2 {
			res.Metrics().NewCounter("test_counter", "operator").Incr(3, "a")
		}
		return &processor{}, nil
	})
	p := pipe(t, "input: FEED\npipeline: { processors: [ "+conf+" ] }\noutput: SINK\n")
	n, found := p.Meter.Sum("test_counter", "operator=a")
	require.True(t, found)
	require.EqualValues(t, 6, n)
	require.NoError(t, p.Stop())
}

// Of the query calls on a batch only Query of an executor binds `this`, has the
// metadata and leaves values what they are.
func TestFactBloblangQuery(t *testing.T) {
	m := service.NewMessage([]byte(`{"a":1.0}`))
	m.MetaSetMut("k", int64(7))
	batch := service.MessageBatch{m}
	exec, err := bloblang.Parse(`root = {"v": ([this.a, @k, "x".bytes().string(), batch_index()])}`)
	require.NoError(t, err)
	out, err := batch.BloblangExecutor(exec).Query(0)
	require.NoError(t, err)
	v, err := out.AsStructured()
	require.NoError(t, err)
	require.Equal(t, map[string]any{"v": []any{json.Number("1.0"), int64(7), "x", int64(0)}}, v)
	text, err := bloblang.Parse(`root = "x"`)
	require.NoError(t, err)
	out, err = batch.BloblangExecutor(text).Query(0)
	require.NoError(t, err)
	require.True(t, out.HasBytes(), "alone a string becomes the bytes of the message")
	statements, err := bloblang.Parse("let x = @k\nroot = $x\nroot = {\"v\": root}")
	require.NoError(t, err)
	out, err = batch.BloblangExecutor(statements).Query(0)
	require.NoError(t, err)
	v, err = out.AsStructured()
	require.NoError(t, err)
	require.Equal(t, map[string]any{"v": int64(7)}, v)
	plain, err := bloblang.Parse(`root = this.a`)
	require.NoError(t, err)
	_, err = m.BloblangQueryValue(plain)
	require.Error(t, err, "without a batch executor `this` is not bound")
}

// In `test` all batches of a case pass one processor before the next one sees any.
func TestFactTestRunsProcessorByProcessor(t *testing.T) {
	var order []string
	probe := func(name string) string {
		return processorOf(t, &processor{process: func(_ context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
			order = append(order, name+payloads(batch)[0])
			return []service.MessageBatch{batch}, nil
		}})
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf(`
pipeline: { processors: [ %s, %s ] }
tests:
  - name: two batches
    target_processors: /pipeline/processors
    input_batches: [ [ { content: a } ], [ { content: b } ] ]
    output_batches: [ [ { content_equals: a } ], [ { content_equals: b } ] ]
`, probe("1"), probe("2"))), 0o600))
	code, err := service.RunCLIToCode(context.Background(), service.CLIOptSetArgs("x", "test", path))
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, []string{"1a", "1b", "2a", "2b"}, order)
}

// A lint rule sees what was written, also processors, with the defaults, and may
// call a method that was registered before the rule was made.
func TestFactLintRules(t *testing.T) {
	var seen any
	require.NoError(t, bloblang.RegisterMethodV2("test_lint", bloblang.NewPluginSpec(), func(*bloblang.ParsedParams) (bloblang.Method, error) {
		return func(v any) (any, error) { seen = v; return []any{"said by the rule"}, nil }, nil
	}))
	spec := service.NewConfigSpec().Field(service.NewProcessorListField("children")).
		Field(service.NewStringField("d").Default("x")).LintRule("root = this.test_lint()")
	env := service.GlobalEnvironment().Clone()
	require.NoError(t, env.RegisterBatchProcessor("test_linted", spec, plugged[service.BatchProcessor]))
	lint := func(list string) (lints []string) {
		found, err := env.FullConfigSchema("", "").NewStreamConfigLinter().LintYAML([]byte("pipeline: { processors: [ { test_linted: { children: " + list + " } } ] }"))
		require.NoError(t, err)
		for _, l := range found {
			lints = append(lints, l.What)
		}
		return lints
	}
	require.Equal(t, []string{"said by the rule"}, lint("[ { mapping: root = this } ]"))
	require.Equal(t, map[string]any{"children": []any{map[string]any{"mapping": "root = this"}}, "d": "x"}, seen)
	require.Equal(t, []string{"said by the rule"}, lint("[]"), "an empty list of processors is no lint of its own here")
}
