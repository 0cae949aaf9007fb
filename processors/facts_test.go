package processors_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

// The tests named Fact hold what this package takes for granted of Benthos. Where
// one fails after an upgrade, a guarantee of ours has lost its ground.

var errTest = errors.New("said by the test")

// One processor serves every thread; Close is called once for each, without a
// deadline.
func TestFactThreadsShareAProcessor(t *testing.T) {
	for threads, closes := range map[string]int{"threads: 3": 3, "threads: -1": runtime.NumCPU()} {
		var made, closed atomic.Int64
		p := &processor{close: func(ctx context.Context) error {
			closed.Add(1)
			_, deadline := ctx.Deadline()
			require.False(t, deadline)
			return nil
		}}
		conf := plug(t, pluginProcessor, func(*service.ParsedConfig, *service.Resources) (any, error) { made.Add(1); return p, nil })
		require.NoError(t, runStream(t, fmt.Sprintf(`
input: %s
pipeline: { %s, processors: [ %s ] }
output: { drop: {} }
`, inputOf(t, batches(nil, texts("a"))), threads, conf)))
		require.EqualValues(t, 1, made.Load())
		require.EqualValues(t, closes, closed.Load(), threads)
	}
}

// Threads call ProcessBatch at the same time, and a hard stop calls Close while a
// call is under way, the context of which ends.
func TestFactCallsAndCloseOverlap(t *testing.T) {
	both := make(chan struct{}, 2)
	ended, release, closed := make(chan struct{}, 2), make(chan struct{}), make(chan struct{}, 3)
	p := &processor{
		process: func(ctx context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
			both <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
			<-release
			return nil, ctx.Err()
		},
		close: func(context.Context) error { closed <- struct{}{}; return nil },
	}
	s := streamOf(t, fmt.Sprintf(`
input: %s
pipeline: { threads: 3, processors: [ %s ] }
output: { drop: {} }
`, inputOf(t, batches(nil, texts("a"), texts("b"))), processorOf(t, p)))
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	within(t, both, "the first call")
	within(t, both, "a second call beside the first")
	go func() { _ = s.StopWithin(time.Millisecond) }()
	within(t, ended, "the end of the context of a call")
	within(t, closed, "a Close while two calls are under way")
	close(release)
	within(t, done, "the end of the stream")
}

// An error from ProcessBatch refuses nothing: the messages go on with the error.
func TestFactProcessorErrorDoesNotRefuse(t *testing.T) {
	var acks []error
	var flagged int
	p := &processor{process: func(context.Context, service.MessageBatch) ([]service.MessageBatch, error) { return nil, errTest }}
	out := &output{write: func(_ context.Context, batch service.MessageBatch) error {
		for _, m := range batch {
			if m.GetError() != nil {
				flagged++
			}
		}
		return nil
	}}
	in := batches(func(_ int, _ *service.Indexer, err error) { acks = append(acks, err) }, texts("a", "b"))
	require.NoError(t, runStream(t, fmt.Sprintf(`
input: %s
pipeline: { threads: 1, processors: [ %s ] }
output: %s
`, inputOf(t, in), processorOf(t, p), outputOf(t, out))))
	require.Equal(t, []error{nil}, acks)
	require.Equal(t, 2, flagged)
}

// failedOf gives the numbers of the messages that an acknowledgement names.
func failedOf(index *service.Indexer, err error) (failed []int, named bool) {
	var some *service.BatchError
	if !errors.As(err, &some) {
		return nil, false
	}
	some.WalkMessagesIndexedBy(index, func(i int, _ *service.Message, err error) bool {
		if err != nil {
			failed = append(failed, i)
		}
		return true
	})
	return failed, true
}

// A row that is a copy of a message refuses that message only, whichever batch it
// leaves in and however it was changed; a message made anew refuses all.
func TestFactRefusalFollowsCopies(t *testing.T) {
	cases := map[string]struct {
		make   func(batch service.MessageBatch) []service.MessageBatch
		failed []int
	}{
		"copies in one batch": {func(b service.MessageBatch) []service.MessageBatch {
			m := b[1].Copy()
			m.SetBytes([]byte("bad"))
			m.MetaDelete("origin")
			return []service.MessageBatch{{b[0].Copy(), m, b[2].Copy()}}
		}, []int{1}},
		"copies in several batches": {func(b service.MessageBatch) []service.MessageBatch {
			m := b[2].Copy()
			m.SetBytes([]byte("bad"))
			return []service.MessageBatch{{b[0].Copy()}, {b[0].Copy(), m}}
		}, []int{0, 2}}, // the second batch was refused as one
		"made anew": {func(b service.MessageBatch) []service.MessageBatch {
			return []service.MessageBatch{{b[0].Copy()}, {service.NewMessage([]byte("bad"))}}
		}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &processor{process: func(_ context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
				return c.make(batch), nil
			}}
			out := &output{write: func(_ context.Context, batch service.MessageBatch) error {
				return batch.WalkWithBatchedErrors(func(_ int, m *service.Message) error {
					if b, _ := m.AsBytes(); string(b) == "bad" {
						return errTest
					}
					return nil
				})
			}}
			var failed []int
			var named bool
			in := batches(func(_ int, index *service.Indexer, err error) {
				require.Error(t, err)
				failed, named = failedOf(index, err)
			}, texts("a", "b", "c"))
			require.NoError(t, runStream(t, fmt.Sprintf(`
input: %s
pipeline: { threads: 1, processors: [ %s ] }
output: %s
`, inputOf(t, in), processorOf(t, p), outputOf(t, out))))
			require.Equal(t, c.failed != nil, named)
			require.Equal(t, c.failed, failed)
		})
	}
}

// A copy has all metadata, the error and the context of its origin, and shares
// none of them afterwards.
func TestFactCopyInheritsEverything(t *testing.T) {
	type key struct{}
	m := service.NewMessage([]byte("a")).WithContext(context.WithValue(context.Background(), key{}, 7))
	m.MetaSetMut("n", 1)
	m.SetError(errTest)
	c := m.Copy()
	v, ok := c.MetaGetMut("n")
	require.True(t, ok)
	require.Equal(t, 1, v)
	require.ErrorIs(t, c.GetError(), errTest)
	require.Equal(t, 7, c.Context().Value(key{}))
	c.MetaDelete("n")
	c.SetBytes([]byte("b"))
	c.SetError(nil)
	_, ok = m.MetaGetMut("n")
	require.True(t, ok)
	require.Equal(t, []string{"a"}, payloads(service.MessageBatch{m}))
	require.ErrorIs(t, m.GetError(), errTest)
}

// A thread that returned several batches gets no other work before all of them
// are acknowledged.
func TestFactSeveralBatchesBlockTheThread(t *testing.T) {
	var mu sync.Mutex
	var order []string
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, fmt.Sprintf(format, args...))
	}
	p := &processor{process: func(_ context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
		say("process %s", payloads(batch)[0])
		return []service.MessageBatch{batch.Copy(), batch.Copy()}, nil
	}}
	out := &output{write: func(_ context.Context, batch service.MessageBatch) error {
		say("write %s", payloads(batch)[0])
		return nil
	}}
	require.NoError(t, runStream(t, fmt.Sprintf(`
input: %s
pipeline: { threads: 1, processors: [ %s ] }
output: %s
`, inputOf(t, batches(nil, texts("a"), texts("b"))), processorOf(t, p), outputOf(t, out))))
	require.Equal(t, []string{"process a", "write a", "write a", "process b", "write b", "write b"}, order)
}
