package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// writer implements service.BatchOutput.
type writer struct {
	producer
	log  *service.Logger
	nag  *nag
	wait backOffs

	mu     sync.RWMutex // protects what follows
	client *kgo.Client  // nil while not connected
	apart  *apart       // of the same brokers
}

func newWriter(p producer, res *service.Resources) *writer {
	return &writer{producer: p, log: res.Logger(), nag: newNag(res.Logger().Errorf)}
}

// Connect implements service.BatchOutput. It fails while no broker answers.
func (w *writer) Connect(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.client != nil {
		return nil
	}
	hook := &brokerHook{nag: w.nag}
	options := append(w.options[:len(w.options):len(w.options)], kgo.WithLogger(clientLog{w.log}), kgo.WithHooks(hook))
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	if err := hook.ping(ctx, client); err != nil {
		client.Close()
		return service.NewErrBackOff(w.named(err), w.wait.next())
	}
	w.wait.reset()
	w.client, w.apart = client, &apart{options: options}
	return nil
}

// WriteBatch implements service.BatchOutput. It returns when the brokers have
// taken every message or refused it; an error names the messages that failed.
func (w *writer) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	w.mu.RLock()
	client, apart := w.client, w.apart
	w.mu.RUnlock()
	if client == nil {
		return service.ErrNotConnected
	}
	failed := make([]error, len(batch))
	records := make([]*kgo.Record, len(batch))
	filled := w.filler(batch)
	for i := range batch {
		records[i], failed[i] = filled(i)
	}
	send(ctx, client, records, failed)
	for i, err := range failed {
		// Only those that are refused by themselves are to be named: neighbours
		// would be put together and refused again. What is too large for the
		// client came to no broker.
		if refusesBatch(err) && !w.oversize(records[i]) {
			failed[i] = apart.write(ctx, records[i])
		}
	}
	for i, err := range failed {
		if err != nil {
			failed[i] = w.about(records[i], err)
		}
	}
	if topics := topicsOf(records, failed); len(topics) > 0 {
		client.PurgeTopicsFromProducing(topics...)
	}
	return batchError(batch, failed)
}

// send writes the records that have not failed yet and returns when each is written
// or has failed.
func send(ctx context.Context, client *kgo.Client, records []*kgo.Record, failed []error) {
	var sent sync.WaitGroup
	for i, r := range records {
		if failed[i] != nil {
			continue
		}
		sent.Add(1)
		client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			failed[i] = err
			sent.Done()
		})
	}
	sent.Wait()
}

// oversize reports a record that is larger than a batch may be.
func (w *writer) oversize(r *kgo.Record) bool { return recordSize(r) > int(w.limit)-512 }

// about says which topic an error is about, and what to do.
func (w *writer) about(r *kgo.Record, err error) error {
	if r == nil {
		return err // it could not be made
	}
	if errors.Is(err, kerr.MessageTooLarge) && w.oversize(r) {
		return fmt.Errorf("topic %s: a message of %d bytes is larger than %s, which is %d: raise it, and max.message.bytes of the topic: %w", r.Topic, recordSize(r), fieldMessageMax, w.limit, err)
	}
	return fmt.Errorf("topic %s: %w", r.Topic, explain(err))
}

// topicsOf gives the topics of records that failed because their topic was created
// again. The client refuses those until it has forgotten the former topic.
func topicsOf(records []*kgo.Record, failed []error) (topics []string) {
	seen := map[string]bool{}
	for i, err := range failed {
		if errors.Is(err, kerr.UnknownTopicID) && !seen[records[i].Topic] {
			seen[records[i].Topic] = true
			topics = append(topics, records[i].Topic)
		}
	}
	return topics
}

// batchError makes one error of the errors of messages, nil where there are none.
func batchError(batch service.MessageBatch, failed []error) error {
	var all *service.BatchError
	for i, err := range failed {
		if err == nil {
			continue
		}
		if all == nil {
			all = service.NewBatchError(batch, err)
		}
		all = all.Failed(i, err)
	}
	if all == nil {
		return nil
	}
	return all
}

// filler gives a function that makes the record of a message.
func (w *writer) filler(batch service.MessageBatch) func(i int) (*kgo.Record, error) {
	text := func(s *service.InterpolatedString, i int, name string) (string, error) {
		v, err := batch.TryInterpolatedString(i, s)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return v, err
	}
	number := func(s *service.InterpolatedString, i, bits int, name string) (int64, error) {
		v, err := text(s, i, name)
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(v, 10, bits)
		if err != nil {
			return 0, fmt.Errorf("%s: %q is not a whole number of %d bits: round it, as in ${! this.value.round() }", name, v, bits)
		}
		return n, nil
	}
	return func(i int) (r *kgo.Record, err error) {
		r = &kgo.Record{}
		if r.Topic, err = text(w.topic, i, fieldTopic); err != nil {
			return nil, err
		}
		if r.Topic == "" {
			return nil, fmt.Errorf("%s: is empty for this message", fieldTopic)
		}
		if r.Value, err = batch[i].AsBytes(); err != nil {
			return nil, err
		}
		if w.key != nil {
			if r.Key, err = batch.TryInterpolatedBytes(i, w.key); err != nil {
				return nil, fmt.Errorf("%s: %w", fieldKey, err)
			}
		}
		if w.partition != nil {
			n, err := number(w.partition, i, 32, fieldPartition)
			if err != nil {
				return nil, err
			}
			r.Partition = int32(n)
		}
		if w.stamp != nil {
			n, err := number(w.stamp, i, 64, map[time.Duration]string{time.Millisecond: fieldTimestampMs, time.Second: fieldTimestamp}[w.unit])
			if err != nil {
				return nil, err
			}
			if r.Timestamp = time.UnixMilli(n); w.unit == time.Second {
				r.Timestamp = time.Unix(n, 0)
			}
		}
		if err = w.head(batch[i], r); err != nil {
			return nil, err
		}
		return r, nil
	}
}

// head adds the headers.
func (w *writer) head(m *service.Message, r *kgo.Record) error {
	if w.headers.IsEmpty() {
		return nil
	}
	return w.headers.Walk(m, func(key, value string) error {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
		return nil
	})
}

// Close implements service.BatchOutput.
func (w *writer) Close(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.client != nil {
		w.client.Close()
		w.apart.close()
		w.client = nil
	}
	return nil
}
