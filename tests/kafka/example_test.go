package kafka

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// example is a file of config/examples, without its endpoint, whose port is taken.
func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "examples", name))
	require.NoError(t, err)
	return string(text) + "\nhttp: { enabled: false }\n"
}

// order is what kafka_orders.yaml makes up.
type order struct {
	At     int64 `json:"order_ts"`
	Page   string
	Amount float64
}

// total is what kafka_totals.yaml makes of it.
type total struct {
	Start  time.Time `json:"window_start"`
	Page   string
	Orders int
	Total  float64
}

func (t total) key() string { return fmt.Sprintf("%s from %d", t.Page, t.Start.Unix()) }

// Made-up orders go through the topic into the totals that their sum asks for.
func TestExamples(t *testing.T) {
	t.Parallel()
	c := open(t)
	orders, totals, rejected := name(t, "orders"), name(t, "totals"), name(t, "rejected")
	c.create(t, orders, 4, nil)
	c.create(t, totals, 1, map[string]string{"cleanup.policy": "compact"})
	c.create(t, rejected, 1, nil)
	dir := t.TempDir()
	env := []string{"KAFKA_BROKERS=" + c.Addr(), "ORDERS_TOPIC=" + orders, "TOTALS_TOPIC=" + totals, "REJECTED_TOPIC=" + rejected,
		"GROUP=" + name(t, "group"), "ORDERS=600", "RATE=300", "STATE=" + filepath.Join(dir, "totals.db")}

	p := run(t, dir, example(t, "kafka_orders.yaml"), env...)
	require.Zero(t, p.wait(), "%s", p.tail())
	in := c.tail(t, orders)
	in.rest(t, c, orders)
	require.Len(t, in.records, 600)
	want := map[string]total{}
	for _, r := range in.records {
		var o order
		require.NoError(t, json.Unmarshal(r.Value, &o))
		require.Equal(t, o.Page, string(r.Key))
		row := total{Start: time.UnixMilli(o.At).Truncate(time.Minute), Page: o.Page}
		row.Orders, row.Total = want[row.key()].Orders+1, want[row.key()].Total+o.Amount
		want[row.key()] = row
	}
	later := time.Now().Add(time.Hour).UnixMilli() // closes everything
	for p := range int32(4) {
		c.produce(t, &kgo.Record{Topic: orders, Partition: p, Value: fmt.Appendf(nil, `{"order_ts":%d,"page":"/close","amount":1}`, later)})
	}
	c.produce(t, &kgo.Record{Topic: orders, Value: []byte(`{"order_ts":"yesterday","page":"/item/1"}`)})

	out := c.tail(t, totals)
	p = run(t, dir, example(t, "kafka_totals.yaml"), env...)
	for deadline := time.Now().Add(patience); out.keys() < len(want); {
		require.True(t, p.running() && time.Now().Before(deadline), "%d of %d totals\n%s", out.keys(), len(want), p.tail())
		out.poll(t.Context(), 200*time.Millisecond)
	}
	require.Zero(t, p.term(), "%s", p.tail())
	out.rest(t, c, totals)
	for _, r := range out.records {
		var got total
		require.NoError(t, json.Unmarshal(r.Value, &got))
		require.Equal(t, entryOf(r).rowKey, string(r.Key))
		require.Equal(t, want[got.key()].Orders, got.Orders, got.key())
		require.InDelta(t, want[got.key()].Total, got.Total, 1e-6, got.key())
	}
	ends, err := c.admin.ListEndOffsets(t.Context(), rejected)
	require.NoError(t, err)
	ends.Each(func(o kadm.ListedOffset) { require.EqualValues(t, 1, o.Offset, "orders without a usable time") })
}
