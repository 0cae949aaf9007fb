package kafka

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// Metadata of a message.
const (
	metaKey       = "kafka_key"
	metaTopic     = "kafka_topic"
	metaPartition = "kafka_partition"
	metaOffset    = "kafka_offset"
	metaLag       = "kafka_lag"
	metaMillis    = "kafka_timestamp_ms"
	metaUnix      = "kafka_timestamp_unix"
	metaTombstone = "kafka_tombstone_message"
)

// messages makes a batch of the records of one partition, which ends at end.
func messages(records []*kgo.Record, end int64) service.MessageBatch {
	if len(records) == 0 {
		return nil
	}
	d := describe(records[0], end)
	batch := make(service.MessageBatch, len(records))
	for i, r := range records {
		batch[i] = service.NewMessage(r.Value)
		d.describe(r, batch[i])
	}
	return batch
}

// described writes the metadata of the records of a batch. What is the same for all
// is put into an interface once.
type described struct {
	topic, partition any
	end              int64
}

func describe(first *kgo.Record, end int64) *described {
	return &described{topic: first.Topic, partition: int(first.Partition), end: end}
}

// describe writes the metadata of a record.
func (d *described) describe(r *kgo.Record, m *service.Message) {
	// Headers are the producer's: one that is called as ours must not forge a
	// position, so ours are set behind them.
	for _, h := range r.Headers {
		if h.Value == nil {
			m.MetaSetMut(h.Key, nil)
		} else {
			m.MetaSetMut(h.Key, string(h.Value))
		}
	}
	m.MetaSetMut(metaKey, r.Key)
	m.MetaSetMut(metaTopic, d.topic)
	m.MetaSetMut(metaPartition, d.partition)
	m.MetaSetMut(metaOffset, int(r.Offset))
	m.MetaSetMut(metaLag, max(d.end-r.Offset-1, 0))
	m.MetaSetMut(metaMillis, r.Timestamp.UnixMilli())
	m.MetaSetMut(metaUnix, r.Timestamp.Unix())
	m.MetaSetMut(metaTombstone, r.Value == nil)
}

// refused gives the indexes of the messages that an error names, ascending, and
// all where it names none.
func refused(n int, index *service.Indexer, err error) []int {
	if err == nil {
		return nil
	}
	named := make([]bool, n)
	count := 0
	var batchErr *service.BatchError
	if errors.As(err, &batchErr) && batchErr.IndexedErrors() > 0 && index != nil {
		batchErr.WalkMessagesIndexedBy(index, func(i int, _ *service.Message, err error) bool {
			if err != nil && i >= 0 && i < n && !named[i] {
				named[i] = true
				count++
			}
			return true
		})
	}
	failed := make([]int, 0, n)
	for i := range n {
		if named[i] || count == 0 { // the error's messages are none of ours: all
			failed = append(failed, i)
		}
	}
	return failed
}
