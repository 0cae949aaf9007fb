package kafka

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/connect-windowed/connect-windowed/tests/kafka/broker"
)

// cluster is a broker as a test sees it.
type cluster struct {
	broker.Broker
	client  *kgo.Client // produces to the partition that a record names
	admin   *kadm.Client
	options []kgo.Opt
}

// connect makes the clients of a test. More options say who it is.
func connect(t *testing.T, b broker.Broker, more ...kgo.Opt) *cluster {
	t.Helper()
	options := append([]kgo.Opt{kgo.SeedBrokers(b.Addr()), kgo.MetadataMinAge(100 * time.Millisecond)}, more...)
	client, err := kgo.NewClient(append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &cluster{Broker: b, client: client, admin: kadm.NewClient(client), options: options}
}

// names makes the names of topics and groups differ.
var names atomic.Int64

// name makes a name of its own for a topic or group of a test.
func name(t *testing.T, what string) string {
	test := regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(t.Name(), "-")
	return fmt.Sprintf("%s.%s.%d", what, strings.Trim(test, "-"), names.Add(1))
}

// create makes a topic.
func (c *cluster) create(t *testing.T, topic string, partitions int32, config map[string]string) {
	t.Helper()
	settings := map[string]*string{}
	for k, v := range config {
		settings[k] = &v
	}
	require.Eventually(t, func() bool { // a topic that was just deleted may linger
		r, err := c.admin.CreateTopic(t.Context(), partitions, 1, settings, topic)
		return err == nil && r.Err == nil
	}, patience, 100*time.Millisecond, "create topic %s", topic)
	c.client.PurgeTopicsFromProducing(topic) // it may know another one of that name
}

// set changes a setting of a topic, "" takes it back.
func (c *cluster) set(t *testing.T, topic, setting, value string) {
	t.Helper()
	change := kadm.AlterConfig{Op: kadm.SetConfig, Name: setting, Value: &value}
	if value == "" {
		change = kadm.AlterConfig{Op: kadm.DeleteConfig, Name: setting}
	}
	r, err := c.admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{change}, topic)
	require.NoError(t, err)
	require.NoError(t, r[0].Err)
}

// produce sends records in their order and waits until they are stored.
func (c *cluster) produce(t *testing.T, records ...*kgo.Record) {
	require.NoError(t, c.client.ProduceSync(t.Context(), records...).FirstErr())
}

// committed is what a group has committed of a topic, over all partitions.
func (c *cluster) committed(t *testing.T, group, topic string) (total int64) {
	t.Helper()
	offsets, err := c.admin.FetchOffsets(t.Context(), group)
	require.NoError(t, err)
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == topic {
			total += o.At
		}
	})
	return total
}

// tail reads a topic from its start.
type tail struct {
	client  *kgo.Client
	records []*kgo.Record
}

func (c *cluster) tail(t *testing.T, topic string) *tail {
	t.Helper()
	client, err := kgo.NewClient(append(slices.Clone(c.options), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &tail{client: client}
}

// poll reads what is there, or waits a little.
func (l *tail) poll(ctx context.Context, wait time.Duration) (n int) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	l.client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
		l.records = append(l.records, r)
		n++
	})
	return n
}

// rest reads what is left of a topic that nobody writes to any more.
func (l *tail) rest(t *testing.T, c *cluster, topic string) {
	t.Helper()
	ends, err := c.admin.ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	var total int64
	ends.Each(func(o kadm.ListedOffset) { total += o.Offset })
	for deadline := time.Now().Add(patience); int64(len(l.records)) < total; {
		require.True(t, time.Now().Before(deadline), "%d of %d records of %s could be read", len(l.records), total, topic)
		l.poll(t.Context(), time.Second)
	}
}

// entry is a row as it stands in a topic.
type entry struct {
	payload                            string
	rowKey, rowID, revision, timing    string
	lateBy, operator, failed, instance string
}

func entryOf(r *kgo.Record) entry {
	h := map[string]string{}
	for _, header := range r.Headers {
		h[header.Key] = string(header.Value)
	}
	return entry{payload: string(r.Value), rowKey: h["windowed_row_key"], rowID: h["windowed_row_id"], revision: h["windowed_revision"],
		timing: h["windowed_timing"], lateBy: h["windowed_late_by"], operator: h["windowed_operator"], failed: h["failed"], instance: h["instance"]}
}

func (l *tail) entries() (all []entry) {
	for _, r := range l.records {
		all = append(all, entryOf(r))
	}
	return all
}

// keys is the number of different row keys.
func (l *tail) keys() int {
	seen := map[string]bool{}
	for _, e := range l.entries() {
		if e.rowKey != "" {
			seen[e.rowKey] = true
		}
	}
	return len(seen)
}
