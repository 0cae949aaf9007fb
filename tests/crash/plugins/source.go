// Package plugins holds the components that crash tests link into the real
// binary: a source that sends again whatever was not acknowledged, as a broker
// does, and an output that keeps a journal and refuses at random.
package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/tests/random"
)

// Topic is the topic of every message of the source.
const Topic = "orders"

// GoFile is the file that a halted source waits for.
const GoFile = "go"

func init() {
	spec := service.NewConfigSpec().Fields(
		service.NewStringField("dir").Description("Where the acknowledged positions are kept."),
		service.NewStringField("shape").Description("The stream, a random.Shape as JSON."),
		service.NewIntField("batch").Description("The largest batch."),
		service.NewDurationField("pause").Description("The time between batches.").Default("0s"),
		service.NewIntField("halt").Description("After how many batches the source waits until GoFile is in its folder, 0 for never.").Default(0))
	service.MustRegisterBatchInput("test_source", spec, func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchInput, error) {
		return newSource(conf)
	})
}

// source sends the partitions of a stream. Its position in each is the first
// message that is not acknowledged; it is on disk before anything else happens.
// Another attempt begins there, sends again what was acknowledged behind it, and
// cuts the stream into other batches.
type source struct {
	marks *marks
	pause time.Duration
	halt  int    // batches before it waits for the file goOn, -1 once that is there, or for never
	goOn  string // GoFile

	mu      sync.Mutex // protects the fields below
	fresh   [][]item
	again   [][]item
	pending int // batches sent and not settled
	wake    chan struct{}
}

// item is one event of the stream and its place in its partition.
type item struct {
	random.Event
	index int
}

func newSource(conf *service.ParsedConfig) (*source, error) {
	dir, err := conf.FieldString("dir")
	if err != nil {
		return nil, err
	}
	text, err := conf.FieldString("shape")
	if err != nil {
		return nil, err
	}
	var shape random.Shape
	if err := json.Unmarshal([]byte(text), &shape); err != nil {
		return nil, err
	}
	limit, err := conf.FieldInt("batch")
	if err != nil {
		return nil, err
	}
	s := &source{wake: make(chan struct{})}
	if s.pause, err = conf.FieldDuration("pause"); err != nil {
		return nil, err
	}
	if s.halt, err = conf.FieldInt("halt"); err != nil {
		return nil, err
	}
	if s.goOn = filepath.Join(dir, GoFile); s.halt == 0 {
		s.halt = -1
	}
	parts := shape.Events()
	if s.marks, err = openMarks(dir, parts); err != nil {
		return nil, err
	}
	rest := make([][]random.Event, len(parts))
	places := map[int]map[int64][]int{} // by partition and offset: the events there
	for p := range parts {
		rest[p] = parts[p][s.marks.next[p]:]
		places[p] = map[int64][]int{}
		for i := s.marks.next[p]; i < len(parts[p]); i++ {
			places[p][parts[p][i].Offset] = append(places[p][parts[p][i].Offset], i)
		}
	}
	for _, batch := range random.Cut(shape.Seed^s.marks.attempt<<20, rest, limit) {
		items := make([]item, len(batch))
		for i, e := range batch {
			at := places[e.Partition][e.Offset]
			items[i] = item{e, at[0]}
			places[e.Partition][e.Offset] = at[1:]
		}
		s.fresh = append(s.fresh, items)
	}
	return s, nil
}

// Connect implements service.BatchInput.
func (s *source) Connect(context.Context) error { return nil }

// ReadBatch implements service.BatchInput.
func (s *source) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	if s.pause > 0 {
		select {
		case <-time.After(s.pause + time.Duration(rand.Int64N(int64(s.pause)))):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	if err := s.halted(ctx); err != nil {
		return nil, nil, err
	}
	for {
		items, wake, done := s.take()
		if items != nil {
			batch, ack := s.messages(items)
			return batch, ack, nil
		}
		if done {
			return nil, nil, service.ErrEndOfInput
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// halted waits where the source halts.
func (s *source) halted(ctx context.Context) error {
	for s.halt == 0 {
		if _, err := os.Stat(s.goOn); err == nil {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.halt = max(s.halt-1, -1)
	return nil
}

// take gives the next batch, refused ones first. Done: all was sent and is
// acknowledged.
func (s *source) take() (items []item, wake <-chan struct{}, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range []*[][]item{&s.again, &s.fresh} {
		if len(*list) > 0 {
			items = (*list)[0]
			*list = (*list)[1:]
			s.pending++
			return items, nil, false
		}
	}
	return nil, s.wake, s.pending == 0
}

func (s *source) messages(items []item) (service.MessageBatch, service.AckFunc) {
	batch := make(service.MessageBatch, len(items))
	for i, it := range items {
		batch[i] = service.NewMessage(Payload(it.Payload))
		batch[i].MetaSetMut("kafka_topic", Topic)
		batch[i].MetaSetMut("kafka_partition", it.Partition)
		batch[i].MetaSetMut("kafka_offset", it.Offset)
	}
	index := batch.Index()
	return batch, func(_ context.Context, err error) error {
		failed := refused(err, index, items)
		if len(failed) < len(items) {
			if err := s.marks.acknowledge(items, failed); err != nil {
				return err
			}
		}
		s.settled(failed)
		return nil
	}
}

// refused gives the items of a batch that have to be sent again. Messages that
// share an offset were one message of the topic and go together.
func refused(err error, index *service.Indexer, items []item) []item {
	if err == nil {
		return nil
	}
	var some *service.BatchError
	if !errors.As(err, &some) {
		return items
	}
	type place struct {
		partition int
		offset    int64
	}
	bad := map[place]bool{}
	some.WalkMessagesIndexedBy(index, func(i int, _ *service.Message, err error) bool {
		if err != nil && i >= 0 {
			bad[place{items[i].Partition, items[i].Offset}] = true
		}
		return true
	})
	if len(bad) == 0 {
		return items
	}
	var out []item
	for _, it := range items {
		if bad[place{it.Partition, it.Offset}] {
			out = append(out, it)
		}
	}
	return out
}

func (s *source) settled(failed []item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
	if len(failed) > 0 {
		s.again = append(s.again, failed)
	}
	close(s.wake)
	s.wake = make(chan struct{})
}

// Close implements service.BatchInput.
func (s *source) Close(context.Context) error { return s.marks.Close() }

// Payload is what a message carries: the row, or the text of {"_raw": text}.
func Payload(raw json.RawMessage) []byte {
	var text struct {
		Raw *string `json:"_raw"`
	}
	if json.Unmarshal(raw, &text) == nil && text.Raw != nil {
		return []byte(*text.Raw)
	}
	return append([]byte(nil), raw...)
}
