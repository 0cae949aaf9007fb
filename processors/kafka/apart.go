package kafka

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// refusals are the errors by which a broker refuses a whole batch of records for
// the sake of one of them, or of the size of all.
var refusals = []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidTimestamp, kerr.InvalidRecord}

func refusesBatch(err error) bool {
	for _, r := range refusals {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// apart writes records one by one. The client puts what is produced at the same
// time into one batch, also that of other writers, so a second client does it,
// which buffers one record and takes the next when that is done. It is made when
// it is first needed.
type apart struct {
	options []kgo.Opt

	mu     sync.Mutex // protects what follows
	client *kgo.Client
}

func (a *apart) connect() (*kgo.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		return a.client, nil
	}
	var err error
	a.client, err = kgo.NewClient(append(a.options[:len(a.options):len(a.options)], kgo.MaxBufferedRecords(1))...)
	return a.client, err
}

// write sends a record in a batch of its own.
func (a *apart) write(ctx context.Context, r *kgo.Record) error {
	client, err := a.connect()
	if err != nil {
		return err
	}
	again := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
	err = client.ProduceSync(ctx, again).FirstErr()
	if errors.Is(err, kerr.UnknownTopicID) {
		client.PurgeTopicsFromProducing(r.Topic) // created again: see topicsOf
	}
	return err
}

func (a *apart) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		a.client.Close()
		a.client = nil
	}
}
