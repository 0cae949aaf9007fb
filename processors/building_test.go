package processors_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

// resources builds resources and closes them at the end of the test.
func resourcesOf(t testing.TB, conf string) *service.Resources {
	t.Helper()
	b := service.NewResourceBuilder()
	require.NoError(t, b.AddYAML(conf))
	res, done, err := b.Build()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, done(context.Background())) })
	return res
}

// makes constructs a processor resource.
func makes(res *service.Resources, label string) error {
	return res.AccessProcessor(context.Background(), label, func(*service.ResourceProcessor) {})
}

// What only looks like an operator is none.
func TestNamesOfOthersAreNoOperators(t *testing.T) {
	require.NoError(t, construct(t, inHost(mark+`, { workflow: { order: [ [ watermark ] ], branches: { watermark: { processors: [ { mapping: root = this } ] } } } }, `+count)))
	require.NoError(t, construct(t, inHost(mark+", { mapping: 'root.tumbling_window = {\"size\": 1}' }, "+count)))
	require.NoError(t, construct(t, inHost("{ label: mine, watermark: { event_time: this.ts } }, { type: tumbling_window, tumbling_window: { size: 5m, aggregates: { n: count() } } }")))
	require.NoError(t, construct(t, inHost(mark+", { resource: far }, "+count)+resource("{ mapping: root = this }")))
}

// A template gives a host its list as plain values.
func TestHostInATemplate(t *testing.T) {
	require.NoError(t, service.RegisterTemplateYAML(`
name: test_template_host
type: processor
fields: [ { name: size, type: string } ]
mapping: |
  root.windowed.state = "memory"
  root.windowed.position = { "partition": "this.p", "offset": "this.o" }
  root.windowed.processors = [
    { "watermark": { "event_time": "this.ts", "partition": "this.p", "partitions": 2 } },
    { "try": [ { "mapping": "root = this" } ] },
    { "tumbling_window": { "size": this.size, "group_by": { "k": "this.k" }, "aggregates": { "n": "count()" } } } ]
`))
	require.NoError(t, construct(t, alone("test_template_host: { size: 5m }")))
	require.ErrorContains(t, construct(t, alone("test_template_host: { size: 0s }")), "above 0")
	require.NoError(t, service.RegisterTemplateYAML(`
name: test_template_nested
type: processor
fields: []
mapping: |
  root.windowed.state = "memory"
  root.windowed.processors = [
    { "watermark": { "event_time": "this.ts" } },
    { "try": [ { "tumbling_window": { "size": "5m", "aggregates": { "n": "count()" } } } ] } ]
`))
	require.ErrorContains(t, construct(t, alone("test_template_nested: {}")), "tumbling_window is nested in another processor at index 1")
}

// A resource that was looked into for operators is what it was for others.
func TestRefusedResourceStaysUsable(t *testing.T) {
	res := resourcesOf(t, inHost(mark+", { resource: far }")+resource(count))
	require.ErrorContains(t, makes(res, "it"), "tumbling_window is nested")
	require.NoError(t, makes(res, "far"), "on its own it may stand")
}

// Constructors of other streams, on other goroutines, have nothing to do with a
// host that is being built.
func TestHostsAreBuiltSideBySide(t *testing.T) {
	inside, outside := make(chan struct{}), make(chan struct{})
	slow := plug(t, pluginProcessor, func(*service.ParsedConfig, *service.Resources) (any, error) {
		close(inside)
		<-outside
		return &processor{}, nil
	})
	res := resourcesOf(t, inHost(mark+", "+slow+", "+count)+`
  - { label: other, tumbling_window: { size: 5m, aggregates: { n: count() } } }
`)
	built := make(chan error, 1)
	go func() { built <- makes(res, "it") }()
	within(t, inside, "a constructor inside of the host")
	other := make(chan error, 1)
	go func() { other <- makes(res, "other") }()
	require.NoError(t, within(t, other, "an operator on its own"))
	close(outside)
	require.NoError(t, within(t, built, "the host"))

	var list string
	for i := range 8 {
		list += fmt.Sprintf("  - { label: h%d, windowed: { state: memory, processors: [ %s, %s ] } }\n  - { label: o%d, try: [ %s ] }\n", i, mark, count, i, mark)
	}
	res = resourcesOf(t, "processor_resources:\n"+list)
	var wg sync.WaitGroup
	for i := range 8 {
		for _, kind := range "ho" {
			wg.Go(func() { require.NoError(t, makes(res, fmt.Sprintf("%c%d", kind, i))) })
		}
	}
	wg.Wait()
}

// Processors between operators are closed with their host, and when it cannot be
// built.
func TestForeignProcessorsAreClosed(t *testing.T) {
	var made, closed atomic.Int64
	foreign := plug(t, pluginProcessor, func(*service.ParsedConfig, *service.Resources) (any, error) {
		made.Add(1)
		return &processor{close: func(context.Context) error { closed.Add(1); return nil }}, nil
	})
	require.NoError(t, construct(t, inHost(mark+", "+foreign+", "+count+", "+foreign)))
	require.EqualValues(t, 2, made.Load())
	require.EqualValues(t, 2, closed.Load())
	for _, conf := range []string{
		inHost(foreign + ", " + foreign + ", " + count),                              // no watermark
		inHost(foreign + ", { try: [ " + count + " ] }, " + foreign),                 // nested
		inHost(foreign+", "+mark, "state: nowhere"),                                  // no such cache
		inInput(foreign+", "+mark, "state: nowhere", "input: { test_ended: {} }"),    // likewise
		inHost(foreign + ", { watermark: { event_time: this.ts, delay: forever } }"), // a later constructor
		inHost(foreign+", { resource: far }") + resource("{ try: [ "+count+" ]}"),    // behind a resource
	} {
		made.Store(0)
		closed.Store(0)
		require.Error(t, construct(t, conf))
		require.Positive(t, made.Load())
		require.Equal(t, made.Load(), closed.Load(), conf)
	}
}

// A name of a file belongs to one at a time.
func TestOneNameOneOwner(t *testing.T) {
	file := "cache_resources: [ { label: state, bbolt: { path: " + filepath.Join(t.TempDir(), "s", "state.db") + " } } ]\n"
	host := func(label, fields string) string {
		return fmt.Sprintf("  - { label: %s, windowed: { state: state, %s processors: [ %s, %s ] } }\n", label, fields, mark, count)
	}
	op := func(label, fields string) string {
		return fmt.Sprintf("  - { label: %s, tumbling_window: { state: state, %s size: 5m, aggregates: { n: count() } } }\n", label, fields)
	}
	res := resourcesOf(t, file+"processor_resources:\n"+host("a", "")+host("b", "")+host("c", "name: other,")+op("d", "")+op("e", "")+op("f", "name: windowed,")+op("g", "name: w,"))
	for _, label := range []string{"a", "c", "d", "g"} {
		require.NoError(t, makes(res, label), label)
	}
	for label, name := range map[string]string{"b": "windowed", "e": "tumbling_window", "f": "windowed"} {
		err := makes(res, label)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "state.db")
		require.ErrorContains(t, err, "name")
		t.Log(err)
	}
}
