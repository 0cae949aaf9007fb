package kafka

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreTopFunction("github.com/golang/glog.(*fileSink).flushDaemon")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// patience bounds how long a test waits for what has to happen.
const patience = 2 * time.Minute

// cluster starts brokers in this process.
func cluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func seeds(c *kfake.Cluster) string { return strings.Join(c.ListenAddrs(), ",") }

// client is one that the test uses itself.
func client(t *testing.T, c *kfake.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics()}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl
}

// produce writes n records "from", "from+1", ... to a partition.
func produce(t *testing.T, cl *kgo.Client, topic string, partition int32, from, n int) {
	t.Helper()
	require.NoError(t, writeNumbers(cl, topic, partition, from, n))
}

func writeNumbers(cl *kgo.Client, topic string, partition int32, from, n int) error {
	var rs []*kgo.Record
	for i := range n {
		rs = append(rs, &kgo.Record{Topic: topic, Partition: partition, Value: []byte(fmt.Sprint(from + i))})
	}
	return cl.ProduceSync(context.Background(), rs...).FirstErr()
}

// newInput makes an input of YAML fields that follow seed_brokers.
func newInput(t *testing.T, c *kfake.Cluster, format string, args ...any) *reader {
	t.Helper()
	text := fmt.Sprintf("seed_brokers: [ %q ]\nfetch_max_wait: 100ms\nmetadata_max_age: 500ms\n", seeds(c)) + fmt.Sprintf(format, args...)
	conf, err := inputSpec().ParseYAML(text, nil)
	require.NoError(t, err)
	parsed, err := parseConsumer(conf)
	require.NoError(t, err)
	r := newReader(parsed, conf.Resources())
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}

func connect(t *testing.T, r *reader) *reader {
	t.Helper()
	require.NoError(t, r.Connect(context.Background()))
	return r
}

// read gives the next batch.
func read(t *testing.T, r *reader) (service.MessageBatch, service.AckFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	batch, ack, err := r.ReadBatch(ctx)
	require.NoError(t, err)
	return batch, ack
}

// texts gives the payloads of a batch.
func texts(t *testing.T, batch service.MessageBatch) (found []string) {
	t.Helper()
	for _, m := range batch {
		b, err := m.AsBytes()
		require.NoError(t, err)
		found = append(found, string(b))
	}
	return found
}

// drainAll reads and acknowledges n messages.
func drainAll(t *testing.T, r *reader, n int) (found []string) {
	t.Helper()
	for len(found) < n {
		batch, ack := read(t, r)
		found = append(found, texts(t, batch)...)
		require.NoError(t, ack(context.Background(), nil))
	}
	return found
}

// lines collects what a logger says.
type lines struct {
	mu   sync.Mutex
	said []string
}

func (l *lines) add(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, fmt.Sprintf(format, v...))
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.said, "\n")
}
