package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// newOutput makes a connected output of YAML fields that follow seed_brokers.
func newOutput(t *testing.T, c *kfake.Cluster, format string, args ...any) *writer {
	t.Helper()
	text := fmt.Sprintf("seed_brokers: [ %q ]\n", seeds(c)) + fmt.Sprintf(format, args...)
	conf, err := outputSpec().ParseYAML(text, nil)
	require.NoError(t, err)
	p, err := parseProducer(conf)
	require.NoError(t, err)
	w := newWriter(p, conf.Resources())
	t.Cleanup(func() { require.NoError(t, w.Close(context.Background())) })
	require.NoError(t, w.Connect(context.Background()))
	return w
}

func batchOf(contents ...string) (batch service.MessageBatch) {
	for _, c := range contents {
		batch = append(batch, service.NewMessage([]byte(c)))
	}
	return batch
}

// topic gives the first n records of a topic.
func topicOf(t *testing.T, c *kfake.Cluster, topic string, n int) (found []*kgo.Record) {
	t.Helper()
	cl := client(t, c, kgo.ConsumeTopics(topic), kgo.FetchMaxWait(50*time.Millisecond))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for len(found) < n {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "records of %s: %d", topic, len(found))
		found = append(found, fetches.Records()...)
	}
	return found
}

// failures gives what an error says of each message, "" for those that were written.
func failures(t *testing.T, batch service.MessageBatch, index *service.Indexer, err error) []string {
	t.Helper()
	said := make([]string, len(batch))
	var batchErr *service.BatchError
	require.ErrorAs(t, err, &batchErr)
	batchErr.WalkMessagesIndexedBy(index, func(i int, _ *service.Message, err error) bool {
		if err != nil {
			said[i] = err.Error()
		}
		return true
	})
	return said
}

func TestWrite(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(3, "out"))
	w := newOutput(t, c, `
topic: ${! metadata("to") }
key: ${! json("k") }
timestamp_ms: ${! json("at") }
metadata: { include_prefixes: [ h_ ], include_patterns: [ '^x$' ] }
compression: lz4`)
	batch := batchOf(`{"k":"a","at":1700000000123}`)
	for key, v := range map[string]any{"to": "out", "h_1": "one", "x": 7, "xx": "no"} {
		batch[0].MetaSetMut(key, v)
	}
	require.NoError(t, w.WriteBatch(context.Background(), batch))
	r := topicOf(t, c, "out", 1)[0]
	require.Equal(t, `{"k":"a","at":1700000000123}`, string(r.Value))
	require.Equal(t, "a", string(r.Key))
	require.EqualValues(t, 1700000000123, r.Timestamp.UnixMilli())
	headers := map[string]string{}
	for _, h := range r.Headers {
		headers[h.Key] = string(h.Value)
	}
	require.Equal(t, map[string]string{"h_1": "one", "x": "7"}, headers)
	want := kgo.StickyKeyPartitioner(nil).ForTopic("out").Partition(&kgo.Record{Key: []byte("a")}, 3)
	require.EqualValues(t, want, r.Partition, "the partition that Kafka's own clients choose")
}

func TestManualPartitioner(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(2, "out"))
	w := newOutput(t, c, "topic: out\npartitioner: manual\npartition: ${! content() }\ntimestamp: '1700000000'")
	batch := batchOf("1", "0", "x", "2", "-1", "1")
	index := batch.Index()
	said := failures(t, batch, index, w.WriteBatch(context.Background(), batch))
	require.Empty(t, said[0]+said[1]+said[5])
	require.Contains(t, said[2], `partition: "x" is not a whole number`)
	require.Contains(t, said[3], "no such partition")
	require.Contains(t, said[4], "no such partition")
	got := map[string]int32{}
	for _, r := range topicOf(t, c, "out", 3) {
		got[string(r.Value)] = r.Partition
		require.EqualValues(t, 1700000000, r.Timestamp.Unix())
	}
	require.Equal(t, map[string]int32{"1": 1, "0": 0}, got)
}

func TestWriteFailures(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "out"))
	w := newOutput(t, c, "topic: ${! json(\"t\") }\nmax_message_bytes: 2KiB\nallow_auto_topic_creation: false\nrecord_delivery_timeout: 3s")
	batch := batchOf(`{"t":"out"}`, `{"t":"missing"}`, `{"t":""}`, `{"t":"out","pad":"`+strings.Repeat("x", 3000)+`"}`, `no json`, `{"t":"out"}`)
	index := batch.Index()
	said := failures(t, batch, index, w.WriteBatch(context.Background(), batch))
	require.Empty(t, said[0]+said[5])
	require.Contains(t, said[1], "topic missing")
	require.Contains(t, said[1], "create the topic")
	require.Contains(t, said[2], "topic: is empty")
	require.Contains(t, said[3], "larger than max_message_bytes, which is 2048")
	require.Contains(t, said[4], "topic:")
	require.Len(t, topicOf(t, c, "out", 2), 2)
}

// TestRefusedNeighbours has a broker refuse whole batches because of their size:
// only messages that are too large by themselves are named, all others are written.
func TestRefusedNeighbours(t *testing.T) {
	c := cluster(t)
	limit := "1000"
	_, err := kadm.NewClient(client(t, c)).CreateTopic(context.Background(), 1, 1, map[string]*string{"max.message.bytes": &limit}, "out")
	require.NoError(t, err)
	w := newOutput(t, c, "topic: out\nkey: ${! content().slice(0, 3) }\ncompression: none")
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			var contents []string
			for i := range 10 {
				contents = append(contents, fmt.Sprintf("%d-%d", n, i)+strings.Repeat("x", 300))
			}
			contents[5] += strings.Repeat("x", 1000)
			batch := batchOf(contents...)
			index := batch.Index()
			var batchErr *service.BatchError
			if !assert.ErrorAs(t, w.WriteBatch(context.Background(), batch), &batchErr) {
				return
			}
			batchErr.WalkMessagesIndexedBy(index, func(i int, _ *service.Message, err error) bool {
				assert.Equal(t, i == 5, err != nil, "%d: %v", i, err)
				return true
			})
		})
	}
	all.Wait()
	seen := map[string]int{}
	for _, r := range topicOf(t, c, "out", 36) {
		seen[string(r.Key)]++
	}
	require.Len(t, seen, 36)
	require.NotContains(t, seen, "0-5")
}

// TestIdempotence has a broker take a batch but lose its answer: the records come
// once, in order.
func TestIdempotence(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "out"))
	w := newOutput(t, c, "topic: out\ntimeout: 1s")
	require.NoError(t, w.WriteBatch(context.Background(), batchOf("0")))
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		return nil, errors.New("no"), true
	})
	require.NoError(t, w.WriteBatch(context.Background(), batchOf("1", "2")))
	require.NoError(t, w.WriteBatch(context.Background(), batchOf("3")))
	var got []string
	for _, r := range topicOf(t, c, "out", 4) {
		got = append(got, string(r.Value))
	}
	require.Equal(t, numbers(0, 4), got)
}

// TestFullBufferWaits writes far more at once than may wait.
func TestFullBufferWaits(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "out"))
	w := newOutput(t, c, "topic: out\nmax_buffered_records: 2\nmax_buffered_bytes: 1KB")
	var all sync.WaitGroup
	errs := make(chan error, 20)
	for range 20 {
		all.Go(func() { errs <- w.WriteBatch(context.Background(), batchOf("a", "b", "c", "d", "e")) })
	}
	all.Wait()
	for range 20 {
		require.NoError(t, <-errs)
	}
	require.Len(t, topicOf(t, c, "out", 100), 100)
}

func TestWriteToARecreatedTopic(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "out"))
	admin := kadm.NewClient(client(t, c))
	w := newOutput(t, c, "topic: out\nmetadata_max_age: 100ms")
	require.NoError(t, w.WriteBatch(context.Background(), batchOf("0")))
	_, err := admin.DeleteTopic(context.Background(), "out")
	require.NoError(t, err)
	_, err = admin.CreateTopic(context.Background(), 1, 1, nil, "out")
	require.NoError(t, err)
	eventually(t, func() bool { return w.WriteBatch(context.Background(), batchOf("1")) == nil }, "a stream writes again what failed")
	require.Equal(t, "1", string(topicOf(t, c, "out", 1)[0].Value))
}

func TestWriteWithoutAConnection(t *testing.T) {
	conf, err := outputSpec().ParseYAML("seed_brokers: [ 'localhost:1' ]\ntopic: t", nil)
	require.NoError(t, err)
	p, err := parseProducer(conf)
	require.NoError(t, err)
	w := newWriter(p, conf.Resources())
	w.nag.say = (&lines{}).add
	require.ErrorContains(t, w.Connect(context.Background()), "seed_brokers localhost:1")
	require.ErrorIs(t, w.WriteBatch(context.Background(), batchOf("a")), service.ErrNotConnected)
	require.NoError(t, w.Close(context.Background()))
}

func TestOutputMistakes(t *testing.T) {
	cases := []struct{ fields, want string }{
		{"topic: ''", "topic is missing"},
		{"topic: t\npartitioner: manual", "partition: is missing"},
		{"topic: t\npartition: '1'", "goes with partitioner: manual only"},
		{"topic: t\npartitioner: murmur2_hash\npartition: '1'", "not with murmur2_hash"},
		{"topic: t\npartitioner: best", "use murmur2_hash, round_robin, least_backup, manual"},
		{"topic: t\ntimestamp: '1'\ntimestamp_ms: '1'", "timestamp_ms: goes without"},
		{"topic: t\nacks: leader", "acks: leader does not go with idempotent_write"},
		{"topic: t\nacks: some\nidempotent_write: false", "use all, leader, none"},
		{"topic: t\nmax_in_flight_requests: 2", "max_in_flight_requests: 2 does not go with idempotent_write"},
		{"topic: t\nmax_in_flight_requests: 0", "at least 1"},
		{"topic: t\ncompression: rar", `compression: "rar" is not supported`},
		{"topic: t\nmax_message_bytes: 200MiB", "broker_write_max_bytes"},
		{"topic: t\nmax_message_bytes: 1B", "out of range"},
		{"topic: t\nmax_buffered_records: 0", "at least 1"},
		{"topic: t\nrecord_retries: -1", "negative"},
		{"topic: t\ntimeout: 1ms", "too short"},
	}
	for _, c := range cases {
		conf, err := outputSpec().ParseYAML("seed_brokers: [ localhost ]\n"+c.fields, nil)
		require.NoError(t, err, c.fields)
		_, err = parseProducer(conf)
		require.ErrorContains(t, err, c.want, c.fields)
	}
}

// TestRemedies wants every remedy to be found through a wrapped error.
func TestRemedies(t *testing.T) {
	for _, r := range remedies {
		require.ErrorContains(t, explain(fmt.Errorf("writing: %w", r.err)), r.remedy)
	}
	require.NoError(t, explain(nil))
	plain := errors.New("something else")
	require.Equal(t, plain, explain(plain))
	require.ErrorIs(t, explain(kerr.UnknownTopicOrPartition), kerr.UnknownTopicOrPartition)
}

func TestNag(t *testing.T) {
	n := newNag(func(string, ...any) {})
	now := time.Unix(0, 0)
	require.True(t, n.due("a", now))
	require.True(t, n.due("b", now))
	require.False(t, n.due("a", now.Add(nagFirst-1)))
	require.True(t, n.due("a", now.Add(nagFirst)))
	require.False(t, n.due("a", now.Add(3*nagFirst-1)))
	require.True(t, n.due("a", now.Add(3*nagFirst)))
	require.True(t, n.due("c", now.Add(time.Hour)))
	require.Len(t, n.said, 1, "what was not heard of for long is forgotten")
}
