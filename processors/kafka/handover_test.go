package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// hostedChain reads a topic through a window. Late and invalid rows pass.
const hostedChain = `
windowed:
  state: memory
  input:
    redpanda: { seed_brokers: [ %q ], topics: [ orders ], consumer_group: %s, fetch_max_wait: 100ms, metadata_max_age: 500ms }
%s  processors:
    - watermark: { event_time: %s, unit: s, delay: 0s, startup_grace: 0s }
    - tumbling_window: { size: 10s, late: pass, group_by: { k: %s }, aggregates: { n: count() } }
`

// rowsOf runs a configuration until it has given n rows, as payload and metadata.
func rowsOf(t *testing.T, conf string, n int) []string {
	t.Helper()
	b := service.NewStreamBuilder()
	b.DisableLinting()
	require.NoError(t, b.SetLoggerYAML("level: none"))
	require.NoError(t, b.AddInputYAML(conf))
	var mu sync.Mutex
	var rows []string
	full := make(chan struct{})
	require.NoError(t, b.AddBatchConsumerFunc(func(_ context.Context, batch service.MessageBatch) error {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range batch {
			body, err := m.AsBytes()
			if err != nil {
				return err
			}
			meta := map[string]any{}
			if err := m.MetaWalkMut(func(k string, v any) error { meta[k] = v; return nil }); err != nil {
				return err
			}
			delete(meta, metaLag) // depends on when it was fetched
			text := fmt.Sprintf("%s error=%v", body, m.GetError())
			for _, k := range slices.Sorted(maps.Keys(meta)) {
				text += fmt.Sprintf(" %s=%T:%v", k, meta[k], meta[k])
			}
			if rows = append(rows, text); len(rows) == n {
				close(full)
			}
		}
		return nil
	}))
	s, err := b.Build()
	require.NoError(t, err)
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	select {
	case <-full:
	case <-time.After(patience):
		t.Fatalf("%d rows of %d: %s", len(rows), n, strings.Join(rows, "\n"))
	}
	require.NoError(t, s.StopWithin(patience))
	<-ran
	slices.Sort(rows)
	return rows
}

// What comes out of a host is the same, metadata included, whether batches are handed
// over or a processor of the input stands between, and whether the expressions let
// the metadata wait or not. Headers do not forge positions.
func TestHandedOverRows(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	at := time.UnixMilli(1_700_000_000_123)
	for i, body := range []string{`{"ts":1,"k":"a"}`, `{"ts":2,"k":"b"}`, `no JSON`, `{"ts":12,"k":"a"}`, `{"ts":3,"k":"late"}`, ``, `{"ts":"x"}`, `{"ts":40,"k":"a"}`} {
		r := &kgo.Record{Topic: "orders", Key: []byte("key"), Value: []byte(body), Timestamp: at.Add(time.Duration(i) * time.Second), Headers: []kgo.RecordHeader{
			{Key: "h", Value: []byte("v")}, {Key: "empty"}, {Key: metaOffset, Value: []byte("7")}, {Key: "windowed_row_key", Value: []byte("forged")}}}
		require.NoError(t, cl.ProduceSync(context.Background(), r).FirstErr())
		if i == 3 { // a step is over before the next
			var same []*kgo.Record
			for range 2 * handedRecords {
				same = append(same, &kgo.Record{Topic: "orders", Value: r.Value})
			}
			require.NoError(t, cl.ProduceSync(context.Background(), same...).FirstErr())
		}
	}
	// Rows: a and b of [0, 10), a of [10, 20), the late one and three that are invalid.
	between := "    processors: [ noop: {} ]\n"
	want := rowsOf(t, fmt.Sprintf(hostedChain, seeds(c), "between", between, "this.ts", "this.k"), 7)
	require.Contains(t, strings.Join(want, "\n"), "kafka_offset=int:2")
	require.Contains(t, strings.Join(want, "\n"), "h=string:v")
	require.Contains(t, strings.Join(want, "\n"), "windowed_late_by")
	require.NotContains(t, strings.Join(want, "\n"), "kafka_offset=string")
	for name, exprs := range map[string][2]string{
		"paths":    {"this.ts", "this.k"},
		"mapping":  {"this.ts", "if this.k == null { null } else { this.k }"},
		"metadata": {"this.ts", `if @kafka_topic == "orders" && @kafka_offset.type() == "number" && @kafka_tombstone_message == false { this.k } else { "wrong" }`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, rowsOf(t, fmt.Sprintf(hostedChain, seeds(c), name, "", exprs[0], "'"+exprs[1]+"'"), 7))
		})
	}
}

// A batch that is handed over lets go of its records and is not bounded by what is in
// flight. Its position holds until it is acknowledged.
func TestShelfThatHandsOver(t *testing.T) {
	config := shelfConfig{buffer: 1 << 20, yield: 1, window: 1, direct: true}
	config.handOver()
	s := newShelf(config, unmarked{})
	s.put("orders", 1, benchRecords(3*handedRecords), 2_000_000)
	var parcels []*parcel
	for {
		p, _ := s.take(time.Now())
		if p == nil {
			break
		}
		require.LessOrEqual(t, len(p.records), handedRecords)
		require.LessOrEqual(t, p.bytes, handedBytes)
		p.records = nil
		parcels = append(parcels, p)
	}
	require.Greater(t, len(parcels), 3)
	first := int64(1_000_000)
	require.Equal(t, first, s.positions()["orders"][1])
	s.settle(parcels[1], nil, time.Now())
	require.Equal(t, first, s.positions()["orders"][1], "one before it is not acknowledged")
	s.settle(parcels[0], nil, time.Now())
	require.Equal(t, parcels[2].first, s.positions()["orders"][1])
	for _, p := range parcels[2:] {
		s.settle(p, nil, time.Now())
	}
	require.Equal(t, first+3*handedRecords, s.positions()["orders"][1])
	require.Zero(t, s.inFlight(nil))
}

// Small buffers bound what is handed over, large batches stay large.
func TestLimitsOfHandingOver(t *testing.T) {
	for _, c := range []struct{ buffer, yield, want int }{{1, 1, 1}, {100, 50, 100}, {1 << 20, 32_000, handedBytes}, {2 << 20, 1 << 20, 1 << 20}} {
		config := shelfConfig{buffer: c.buffer, yield: c.yield}
		config.handOver()
		require.Equal(t, c.want, config.yield, "%v", c)
	}
}
