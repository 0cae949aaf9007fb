package processors_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

// An input that has a child sees the child's natural end, once every batch of the
// child is acknowledged and not before, and a stop as the end of its context.
func TestFactChildEndsAfterItsAcks(t *testing.T) {
	ended, stopped := make(chan struct{}), make(chan struct{})
	conf := plugWith(t, pluginInput, "child: %s", func(conf *service.ParsedConfig, _ *service.Resources) (any, error) {
		child, err := conf.FieldInput("child")
		return &input{
			read: func(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
				_, ack, err := child.ReadBatch(ctx)
				require.NoError(t, err)
				short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				_, _, err = child.ReadBatch(short)
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded, "the child ended although a batch is not acknowledged")
				require.NoError(t, ack(ctx, nil))
				_, _, err = child.ReadBatch(ctx)
				require.ErrorIs(t, err, service.ErrEndOfInput)
				close(ended)
				<-ctx.Done()
				close(stopped)
				return nil, nil, ctx.Err()
			},
			close: child.Close,
		}, err
	})
	s := streamOf(t, fmt.Sprintf(`
input: %s
output: { drop: {} }
`, fmt.Sprintf(conf, inputOf(t, batches(nil, texts("a"))))))
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	within(t, ended, "the end of the child")
	require.NoError(t, s.StopWithin(patience))
	within(t, stopped, "the end of the context")
	within(t, done, "the end of the stream")
}

// A child that is closed looks as if it had ended, and it cannot be closed while
// batches of it are not acknowledged.
func TestFactClosedChild(t *testing.T) {
	silent := &input{read: func(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}}
	child := ownedInput(t, inputOf(t, silent))
	require.NoError(t, child.Close(context.Background()))
	_, _, err := child.ReadBatch(context.Background())
	require.ErrorIs(t, err, service.ErrEndOfInput)

	child = ownedInput(t, inputOf(t, batches(nil, texts("a"))))
	_, ack, err := child.ReadBatch(context.Background())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, child.Close(ctx), context.DeadlineExceeded)
	require.NoError(t, ack(context.Background(), nil))
	require.NoError(t, child.Close(context.Background()))
}

func ownedInput(t testing.TB, conf string) *service.OwnedInput {
	t.Helper()
	spec := service.NewConfigSpec().Field(service.NewInputField("child"))
	parsed, err := spec.ParseYAML("child: "+conf, nil)
	require.NoError(t, err)
	child, err := parsed.FieldInput("child")
	require.NoError(t, err)
	return child
}

// An input that gives a batch after a soft stop has begun may find it dropped,
// neither acknowledged nor refused. It is not asked again, its acknowledgements
// go on, and it is closed without a deadline when they are through.
func TestFactSoftStopDropsTheLastBatch(t *testing.T) {
	var reads, acks atomic.Int64
	reading, closed := make(chan struct{}), make(chan struct{})
	hold := make(chan struct{})
	in := &input{
		read: func(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
			if reads.Add(1) == 2 {
				close(reading)
				<-ctx.Done()
			}
			return texts("a"), func(context.Context, error) error { acks.Add(1); return nil }, nil
		},
		close: func(ctx context.Context) error {
			_, deadline := ctx.Deadline()
			require.False(t, deadline)
			require.EqualValues(t, 1, acks.Load(), "closed before the acknowledgement, or the last batch counted")
			close(closed)
			return nil
		},
	}
	out := &output{write: func(context.Context, service.MessageBatch) error { <-hold; return nil }}
	s := streamOf(t, fmt.Sprintf("input: %s\noutput: %s\n", inputOf(t, in), outputOf(t, out)))
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	within(t, reading, "the second read")
	go func() { _ = s.StopWithin(patience) }()
	select {
	case <-closed:
		require.Fail(t, "closed while a batch is in flight")
	case <-time.After(200 * time.Millisecond):
	}
	close(hold)
	within(t, closed, "the Close of the input")
	within(t, done, "the end of the stream")
	require.EqualValues(t, 2, reads.Load())
	require.EqualValues(t, 1, acks.Load())
}

// A hard stop ends a stream whose acknowledgements never come, without them.
func TestFactHardStopForgetsAcks(t *testing.T) {
	var acks atomic.Int64
	written := make(chan struct{})
	in := batches(func(int, *service.Indexer, error) { acks.Add(1) }, texts("a"))
	out := &output{write: func(ctx context.Context, _ service.MessageBatch) error {
		close(written)
		<-ctx.Done()
		return ctx.Err()
	}}
	s := streamOf(t, fmt.Sprintf("input: %s\noutput: %s\n", inputOf(t, in), outputOf(t, out)))
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	within(t, written, "the write")
	_ = s.StopWithin(10 * time.Millisecond)
	within(t, done, "the end of the stream")
	require.Zero(t, acks.Load())
}

// An input cannot end a stream with an error: it is asked again, or ends it well.
// Only a constructor's error is the stream's.
func TestFactInputCannotFailAStream(t *testing.T) {
	var reads int
	in := &input{read: func(context.Context) (service.MessageBatch, service.AckFunc, error) {
		if reads++; reads < 3 {
			return nil, nil, errTest
		}
		return nil, nil, service.ErrEndOfInput
	}}
	require.NoError(t, runStream(t, fmt.Sprintf("input: %s\noutput: { drop: {} }\n", inputOf(t, in))))
	require.Equal(t, 3, reads)
	conf := plug(t, pluginInput, func(*service.ParsedConfig, *service.Resources) (any, error) { return nil, errTest })
	require.ErrorIs(t, runStream(t, fmt.Sprintf("input: %s\noutput: { drop: {} }\n", conf)), errTest)
}

// A foreign processor gives nothing for an empty batch.
func TestFactEmptyBatchesVanish(t *testing.T) {
	for _, conf := range []string{"mapping: root = this", "log: {}", "branch: { processors: [ mapping: root = this ] }"} {
		p := ownedProcessors(t, "[ { "+conf+" } ]")[0]
		out, err := p.ProcessBatch(context.Background(), service.MessageBatch{})
		require.NoError(t, err, conf)
		for _, batch := range out {
			require.Empty(t, batch, conf)
		}
		require.NoError(t, p.Close(context.Background()))
	}
}

func listConf(t testing.TB, list string) *service.ParsedConfig {
	t.Helper()
	spec := service.NewConfigSpec().Field(service.NewProcessorListField("children"))
	parsed, err := spec.ParseYAML("children: "+list, nil)
	require.NoError(t, err)
	return parsed
}

func ownedProcessors(t testing.TB, list string) []*service.OwnedProcessor {
	t.Helper()
	owned, err := listConf(t, list).FieldProcessorList("children")
	require.NoError(t, err)
	return owned
}

// The elements of a list of processors can be seen and be constructed one by one,
// on the goroutine that asks for it.
func TestFactListOfProcessors(t *testing.T) {
	var made []string
	here := stackOf()
	probe := func(name string) string {
		return plug(t, pluginProcessor, func(*service.ParsedConfig, *service.Resources) (any, error) {
			require.Equal(t, here, stackOf())
			made = append(made, name)
			return &processor{}, nil
		})
	}
	conf := listConf(t, fmt.Sprintf("[ %s, { try: [ %s ] }, { mapping: root = this } ]", probe("a"), probe("b")))
	raw, err := conf.FieldAny("children")
	require.NoError(t, err)
	list, ok := raw.([]any)
	require.True(t, ok, "%T", raw)
	require.Len(t, list, 3)
	for i, want := range [][]string{{"a"}, {"b"}, nil} {
		made = nil
		_, err := conf.FieldProcessor("children", fmt.Sprint(i))
		require.NoError(t, err)
		require.Equal(t, want, made)
	}
	_, err = conf.FieldProcessor("children", "3")
	require.Error(t, err)
}

// Elements of the raw list are YAML nodes where the configuration came as YAML,
// and plain values where a template made it.
func TestFactShapesOfRawElements(t *testing.T) {
	var shape string
	id := pluginID(t, pluginProcessor, func(conf *service.ParsedConfig, _ *service.Resources) (any, error) {
		raw, err := conf.FieldAny("children")
		if err != nil {
			return nil, err
		}
		shape = fmt.Sprintf("%T", raw.([]any)[0])
		_, err = conf.FieldProcessor("children", "0")
		return &processor{}, err
	})
	template := `
name: test_template_shapes
type: processor
fields: [ { name: id, type: string } ]
mapping: |
  root.test_plugin_processor.id = this.id
  root.test_plugin_processor.children = [ { "mapping": "root = this" } ]
`
	require.NoError(t, service.RegisterTemplateYAML(template))
	for conf, want := range map[string]string{
		"{ test_plugin_processor: { id: %s, children: [ { mapping: root = this } ] } }": "*yaml.Node",
		"{ test_template_shapes: { id: %s } }":                                          "map[string]interface {}",
	} {
		shape = ""
		require.NoError(t, runStream(t, fmt.Sprintf(`
input: { generate: { count: 1, mapping: 'root = 1' } }
pipeline: { processors: [ { try: [ %s ] } ] }
output: { drop: {} }
`, fmt.Sprintf(conf, id))))
		require.Equal(t, want, shape)
	}
}

// The context of a message, unlike its metadata, passes what changes messages.
func TestFactContextSurvives(t *testing.T) {
	type key struct{}
	for _, list := range []string{
		"[ { mapping: 'root = {}' }, { mapping: 'meta = deleted()' } ]",
		"[ { mutation: root.a = 1 } ]",
		"[ { branch: { processors: [ { mapping: root = 1 } ], result_map: root.b = this } } ]",
		"[ { archive: { format: json_array } }, { unarchive: { format: json_array } } ]",
		"[ { try: [ { mapping: root = this } ] }, { catch: [ { mapping: root = this } ] } ]",
		"[ { for_each: [ { mapping: root = this } ] } ]",
		"[ { switch: [ { processors: [ { mapping: root = this } ] } ] } ]",
		"[ { compress: { algorithm: gzip } }, { decompress: { algorithm: gzip } } ]",
	} {
		procs := ownedProcessors(t, list)
		m := service.NewMessage([]byte(`{"a":[1,2]}`))
		m = m.WithContext(context.WithValue(m.Context(), key{}, 7))
		out, err := service.ExecuteProcessors(context.Background(), procs, service.MessageBatch{m})
		require.NoError(t, err)
		require.NotEmpty(t, out, list)
		for _, batch := range out {
			for _, m := range batch {
				require.NoError(t, m.GetError(), list)
				require.Equal(t, 7, m.Context().Value(key{}), list)
			}
		}
		for _, p := range procs {
			require.NoError(t, p.Close(context.Background()))
		}
	}
}

// An optional map of objects that is absent is said to be there, with nothing in
// it.
func TestFactContainsOfAbsentMap(t *testing.T) {
	spec := pluginSpec().Field(service.NewObjectMapField("objects", service.NewStringField("a")).Optional())
	conf, err := spec.ParseYAML("id: x", nil)
	require.NoError(t, err)
	require.True(t, conf.Contains("objects"))
	objects, err := conf.FieldObjectMap("objects")
	require.NoError(t, err)
	require.Empty(t, objects)
}
