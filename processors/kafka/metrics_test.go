package kafka

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// exported is what the components of a stream have measured, by name and the values
// of the labels, as `name [a b]`.
type exported struct {
	mu     sync.Mutex
	values map[string]int64
}

// of gives a metric, -1 where it was never set.
func (e *exported) of(name string, labels ...string) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if v, ok := e.values[fmt.Sprint(name, labels)]; ok {
		return v
	}
	return -1
}

func (e *exported) NewCounterCtor(name string, keys ...string) service.MetricsExporterCounterCtor {
	return func(values ...string) service.MetricsExporterCounter { return e.metric(name, keys, values) }
}

func (e *exported) NewTimerCtor(name string, keys ...string) service.MetricsExporterTimerCtor {
	return func(values ...string) service.MetricsExporterTimer { return e.metric(name+"_timer", keys, values) }
}

func (e *exported) NewGaugeCtor(name string, keys ...string) service.MetricsExporterGaugeCtor {
	return func(values ...string) service.MetricsExporterGauge { return e.metric(name, keys, values) }
}

func (e *exported) Close(context.Context) error { return nil }

// metric leaves out where the component stands.
func (e *exported) metric(name string, keys, values []string) *exportedMetric {
	labels := []string{}
	for i, k := range keys {
		if k != "path" && values[i] != "" {
			labels = append(labels, values[i])
		}
	}
	return &exportedMetric{e, fmt.Sprint(name, labels)}
}

type exportedMetric struct {
	in   *exported
	name string
}

func (m *exportedMetric) change(f func(v int64) int64) {
	m.in.mu.Lock()
	defer m.in.mu.Unlock()
	m.in.values[m.name] = f(m.in.values[m.name])
}

func (m *exportedMetric) Incr(n int64)   { m.change(func(v int64) int64 { return v + n }) }
func (m *exportedMetric) Set(n int64)    { m.change(func(int64) int64 { return n }) }
func (m *exportedMetric) Timing(n int64) { m.Set(n) }

var measured = &exported{values: map[string]int64{}}

func init() {
	must(service.RegisterMetricsExporter("test_exported", service.NewConfigSpec(), func(*service.ParsedConfig, *service.Logger) (service.MetricsExporter, error) {
		return measured, nil
	}))
}

// measuredStream runs an input whose metrics are exported. What it reads goes to
// consume.
func measuredStream(t *testing.T, input string, consume service.MessageBatchHandlerFunc) {
	t.Helper()
	b := service.NewStreamBuilder()
	require.NoError(t, b.SetLoggerYAML("level: none"))
	require.NoError(t, b.SetMetricsYAML("test_exported: {}"))
	require.NoError(t, b.AddInputYAML(input))
	require.NoError(t, b.AddBatchConsumerFunc(consume))
	s, err := b.Build()
	require.NoError(t, err)
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		require.NoError(t, s.StopWithin(patience))
		<-ran
	})
}

// The lag is what a partition holds behind the last message that is acknowledged.
func TestLag(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(2, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 10, 6)
	go1 := make(chan struct{})
	measuredStream(t, fmt.Sprintf(`
label: lagging
redpanda: { seed_brokers: [ %q ], topics: [ orders ], consumer_group: lag, fetch_max_wait: 100ms, max_yield_batch_bytes: 4B, topic_lag_refresh_period: 20ms }
`, seeds(c)), func(ctx context.Context, batch service.MessageBatch) error {
		if at, _ := batch[0].MetaGet(metaOffset); at == "2" {
			select {
			case <-go1:
			case <-ctx.Done():
			}
		}
		return nil
	})
	lag := func(partition string) int64 { return measured.of("redpanda_lag", "lagging", "orders", partition) }
	eventually(t, func() bool { return lag("0") == 4 }, "two of six are acknowledged")
	produce(t, cl, "orders", 0, 20, 3)
	eventually(t, func() bool { return lag("0") == 7 }, "three more have come")
	close(go1)
	eventually(t, func() bool { return lag("0") == 0 }, "all are acknowledged")
	require.LessOrEqual(t, lag("1"), int64(0), "an empty partition")
}

// Batches that are handed over count as the messages that they are, and their lag is
// measured as elsewhere.
func TestMetricsOfHandedOverBatches(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 0, 3*handedRecords+1)
	measuredStream(t, fmt.Sprintf(`
windowed:
  state: memory
  input: { label: handing, redpanda: { seed_brokers: [ %q ], topics: [ orders ], consumer_group: handed, fetch_max_wait: 100ms, topic_lag_refresh_period: 20ms } }
  processors: [ { watermark: { event_time: this } }, { tumbling_window: { size: 10s, aggregates: { n: count() } } } ]
`, seeds(c)), func(context.Context, service.MessageBatch) error { return nil })
	eventually(t, func() bool { return measured.of("redpanda_lag", "handing", "orders", "0") == 0 }, "all are acknowledged")
	require.EqualValues(t, 3*handedRecords+1, measured.of("input_received", "handing"))
}
