package processors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"gopkg.in/yaml.v3"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// childEnv is set in a process that a test started for itself.
const childEnv = "PROCESSORS_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}

// inChild runs the test in a process of its own, where goroutines may stay: a
// child input that waits for acknowledgements that never come cannot be stopped.
func inChild(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(childEnv) != "" {
		test(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"=yes")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
}

// patience is how long something that is due may take to come.
const patience = 2 * time.Minute

// constructors are what the plugins of a test are made by, by their id.
var constructors sync.Map

type constructor func(*service.ParsedConfig, *service.Resources) (any, error)

var lastID atomic.Int64

// pluginID registers a plugin that is made by f.
func pluginID(t testing.TB, kind string, f constructor) string {
	id := fmt.Sprintf("%s-%d", kind, lastID.Add(1))
	constructors.Store(id, f)
	t.Cleanup(func() { constructors.Delete(id) })
	return id
}

// plug gives the configuration of a plugin that is made by f.
func plug(t testing.TB, kind string, f constructor) string {
	return fmt.Sprintf(`{ %s: { id: %s } }`, kind, pluginID(t, kind, f))
}

// plugWith does so with another field.
func plugWith(t testing.TB, kind, field string, f constructor) string {
	return fmt.Sprintf(`{ %s: { id: %s, %s } }`, kind, pluginID(t, kind, f), field)
}

func plugged[T any](conf *service.ParsedConfig, res *service.Resources) (part T, err error) {
	id, err := conf.FieldString("id")
	if err != nil {
		return part, err
	}
	f, ok := constructors.Load(id)
	if !ok {
		return part, fmt.Errorf("no plugin %q", id)
	}
	made, err := f.(constructor)(conf, res)
	if err != nil {
		return part, err
	}
	return made.(T), nil
}

// The kinds of plugins.
const (
	pluginInput     = "test_plugin_input"
	pluginProcessor = "test_plugin_processor"
	pluginOutput    = "test_plugin_output"
	pluginCache     = "test_plugin_cache"
)

func pluginSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Field(service.NewStringField("id"))
}

func init() {
	spec := pluginSpec().Field(service.NewInputField("child").Optional()).Field(service.NewProcessorListField("children").Optional())
	service.MustRegisterBatchInput(pluginInput, spec, plugged[service.BatchInput])
	spec = pluginSpec().Field(service.NewProcessorListField("children").Optional()).
		Field(service.NewObjectMapField("objects", service.NewStringField("a")).Optional())
	service.MustRegisterBatchProcessor(pluginProcessor, spec, plugged[service.BatchProcessor])
	service.MustRegisterBatchOutput(pluginOutput, pluginSpec(), func(conf *service.ParsedConfig, res *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
		out, err := plugged[service.BatchOutput](conf, res)
		return out, service.BatchPolicy{}, 64, err
	})
	service.MustRegisterBatchInput("test_ended", service.NewConfigSpec(), func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
		return batches(nil), nil
	})
	service.MustRegisterCache(pluginCache, pluginSpec(), plugged[service.Cache])
}

// input is an input made of functions; those that are nil do the obvious.
type input struct {
	read  func(ctx context.Context) (service.MessageBatch, service.AckFunc, error)
	close func(ctx context.Context) error
}

func (in *input) Connect(context.Context) error { return nil }

func (in *input) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	return in.read(ctx)
}

func (in *input) Close(ctx context.Context) error {
	if in.close == nil {
		return nil
	}
	return in.close(ctx)
}

// processor is a processor made of functions.
type processor struct {
	process func(ctx context.Context, batch service.MessageBatch) ([]service.MessageBatch, error)
	close   func(ctx context.Context) error
}

func (p *processor) ProcessBatch(ctx context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
	if p.process == nil {
		return []service.MessageBatch{batch}, nil
	}
	return p.process(ctx, batch)
}

func (p *processor) Close(ctx context.Context) error {
	if p.close == nil {
		return nil
	}
	return p.close(ctx)
}

// output is an output made of a function.
type output struct {
	write func(ctx context.Context, batch service.MessageBatch) error
}

func (out *output) Connect(context.Context) error { return nil }

func (out *output) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	if out.write == nil {
		return nil
	}
	return out.write(ctx, batch)
}

func (out *output) Close(context.Context) error { return nil }

// inputOf, processorOf and outputOf plug a component that exists already.
func inputOf(t testing.TB, in *input) string {
	return plug(t, pluginInput, func(*service.ParsedConfig, *service.Resources) (any, error) { return in, nil })
}

func processorOf(t testing.TB, p *processor) string {
	return plug(t, pluginProcessor, func(*service.ParsedConfig, *service.Resources) (any, error) { return p, nil })
}

func outputOf(t testing.TB, out *output) string {
	return plug(t, pluginOutput, func(*service.ParsedConfig, *service.Resources) (any, error) { return out, nil })
}

// batches is an input that gives these batches, then ends. acked is called with
// the number of each batch and what became of it; it may be nil.
func batches(acked func(n int, index *service.Indexer, err error), list ...service.MessageBatch) *input {
	var mu sync.Mutex
	next := 0
	return &input{read: func(context.Context) (service.MessageBatch, service.AckFunc, error) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(list) {
			return nil, nil, service.ErrEndOfInput
		}
		n := next
		next++
		index := list[n].Index()
		return list[n], func(_ context.Context, err error) error {
			if acked != nil {
				acked(n, index, err)
			}
			return nil
		}, nil
	}}
}

// texts makes a batch of payloads.
func texts(payloads ...string) (batch service.MessageBatch) {
	for _, p := range payloads {
		batch = append(batch, service.NewMessage([]byte(p)))
	}
	return batch
}

// payloads are the payloads of a batch.
func payloads(batch service.MessageBatch) (list []string) {
	for _, m := range batch {
		b, _ := m.AsBytes()
		list = append(list, string(b))
	}
	return list
}

// runStream runs a stream from its YAML to its natural end.
func runStream(t testing.TB, text string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return streamOf(t, text).Run(ctx)
}

func streamOf(t testing.TB, text string) *service.Stream {
	t.Helper()
	b := service.NewStreamBuilder()
	require.NoError(t, b.SetYAML(text+"\nlogger: { level: none }\n"))
	s, err := b.Build()
	require.NoError(t, err)
	return s
}

// within waits for a channel to be closed or to give something.
func within[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		require.Fail(t, "waited in vain", what)
	}
	return v
}

// pipe starts a pipeline from its YAML, in which FEED and SINK stand for the
// input and the output of the test.
func pipe(t testing.TB, text string) *drive.Pipe {
	t.Helper()
	p, err := startPipe(text)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

func startPipe(text string) (*drive.Pipe, error) {
	return drive.Start(func(feed, sink map[string]any) map[string]any {
		for word, conf := range map[string]any{"FEED": feed, "SINK": sink} {
			b, err := json.Marshal(conf)
			if err != nil {
				panic(err)
			}
			text = strings.ReplaceAll(text, word, string(b))
		}
		var whole map[string]any
		if err := yaml.Unmarshal([]byte(text), &whole); err != nil {
			panic(fmt.Sprintf("%v in\n%s", err, text))
		}
		return whole
	})
}

// stackOf names the goroutine that calls.
func stackOf() string {
	buf := make([]byte, 64)
	head, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), " [")
	return head
}
