package processors

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing/host"
)

func TestInputsThatStandAlone(t *testing.T) {
	for text, kind := range map[string]string{
		`redpanda: {}`:                                       "redpanda",
		`{ label: x, redpanda: {} }`:                         "redpanda",
		`{ redpanda: {}, processors: [] }`:                   "redpanda",
		`{ redpanda: {}, processors: [ { noop: {} } ] }`:     "",
		`{ type: redpanda, redpanda: {} }`:                   "", // the usual way is always right
		`{ broker: { inputs: [ { redpanda: {} } ] } }`:       "broker",
		`resource: redpanda`:                                 "resource",
		`{}`:                                                 "",
		`redpanda`:                                           "",
		`{ label: "", redpanda: { topics: [ a ] }, nano: 1}`: "",
	} {
		var node yaml.Node
		require.NoError(t, yaml.Unmarshal([]byte(text), &node))
		require.Equal(t, kind, standsAlone(&node), text)
		require.Equal(t, kind, standsAlone(plain(&node)), text)
	}
	require.Nil(t, NewHandover("redpanda", service.MockResources()), "there is no host")
}

func TestScannersThatStandAlone(t *testing.T) {
	for text, kind := range map[string]string{
		`file: { paths: [ a ], scanner: { lines_batch: {} } }`:                                   "lines_batch",
		`{ label: x, file: { paths: [ a ], scanner: { lines_batch: { omit_empty: true } } } }`:   "lines_batch",
		`stdin: { scanner: { lines_batch: {} } }`:                                                "lines_batch",
		`file: { paths: [ a ], scanner: { lines: {} } }`:                                         "lines",
		`file: { paths: [ a ], scanner: { decompress: { into: { lines_batch: {} } } } }`:         "decompress",
		`file: { paths: [ a ] }`:                                                                 "",
		`{ file: { paths: [ a ], scanner: { lines_batch: {} } }, processors: [ { noop: {} } ] }`: "",
		`broker: { inputs: [ { file: { paths: [ a ], scanner: { lines_batch: {} } } } ] }`:       "",
		`socket: { network: tcp, address: a, scanner: { lines_batch: {} } }`:                     "",
	} {
		var node yaml.Node
		require.NoError(t, yaml.Unmarshal([]byte(text), &node))
		require.Equal(t, kind, scannerAlone(&node), text)
	}
	construct := func(n *nursery) (over *Handover) {
		_, err := observe(n, func() error {
			over = newScannerHandover("lines_batch", service.MockResources())
			return nil
		})
		require.NoError(t, err)
		return over
	}
	require.NotNil(t, construct(&nursery{input: true, scanner: "lines_batch"}))
	require.Nil(t, construct(&nursery{input: true, scanner: "lines"}))
	require.Nil(t, construct(&nursery{scanner: "lines_batch"}), "a processor of a chain")
	require.Nil(t, newScannerHandover("lines_batch", service.MockResources()), "there is no host")
}

// Metadata waits only where nothing can see it.
func TestChainsThatAreBlindToMetadata(t *testing.T) {
	const mark = "watermark: { event_time: this.ts }"
	const count = "tumbling_window: { size: 5m, group_by: { k: this.k }, aggregates: { n: count(), s: sum(this.a.b) } }"
	for _, c := range []struct {
		blind bool
		list  []string
	}{
		{true, []string{mark, count}},
		{true, []string{"watermark: { event_time: this.ts, partition: this.p }", count}},
		{true, []string{"watermark: { sources: { a: { when: 'this.k == \"x\"', event_time: this.ts }, b: { when: 'this.k != \"x\"', event_time: this.ts } } }", count}},
		{true, []string{mark, "session_window: { gap: 5m, aggregates: { n: count() } }"}},
		{false, []string{"watermark: { event_time: '@ts' }", count}},
		{false, []string{"watermark: { event_time: this.ts, partition: '@kafka_topic' }", count}},
		{false, []string{"watermark: { sources: { a: { when: '@kafka_topic == \"a\"', event_time: this.ts } } }", count}},
		{false, []string{mark, "tumbling_window: { size: 5m, group_by: { k: '@kafka_topic' }, aggregates: { n: count() } }"}},
		{false, []string{mark, "tumbling_window: { size: 5m, aggregates: { n: count_if(this.a > this.b) } }"}},
		{false, []string{mark, "noop: {}", count}},
		{false, []string{"noop: {}", mark, count}},
		{false, []string{mark, count, "noop: {}"}},
		{false, []string{mark, "watermark_dedupe: { key: this.id, within: 1h }"}},
		{false, []string{mark, "keyed_state: { key: this.id, ttl: 1h, on_event: 'root.state = this.state' }"}},
	} {
		text := "state: memory\nprocessors:\n"
		for _, p := range c.list {
			text += "  - " + p + "\n"
		}
		conf, err := service.NewConfigSpec().Fields(hostFields()...).ParseYAML(text, nil)
		require.NoError(t, err)
		b, err := buildChain(conf, conf.Resources(), 0)
		require.NoError(t, err, text)
		require.Equal(t, c.blind, b.bare, text)
		b.close(context.Background())
	}
}

// three are three records.
type three struct{}

func (three) Len() int { return 3 }
func (three) Record(i int) ([]byte, int64) {
	return []byte(fmt.Sprintf(`{"n":%d}`, i)), int64(10 + i)
}
func (three) Describe(i int, m *service.Message) { m.MetaSetMut("n", i) }

func TestHandedBatches(t *testing.T) {
	h := &Handover{received: service.MockResources().Metrics().NewCounter("input_received")}
	handed := &Handed{Partition: "orders/1", Lag: true, Records: three{}}
	batch := h.Batch(handed)
	require.Len(t, batch, 1)
	require.Same(t, handed, takeHanded(batch))
	require.Nil(t, takeHanded(batch), "nobody else holds it")
	require.Nil(t, takeHanded(service.MessageBatch{service.NewMessage(nil)}))
	require.Nil(t, takeHanded(nil))

	entries := make([]host.Entry, 3)
	require.EqualValues(t, 21, (&positioner{}).handed(handed, entries))
	for _, bare := range []bool{false, true} {
		for i, m := range handed.messages(bare) {
			require.Equal(t, host.Position{Partition: "orders/1", Offset: int64(10 + i), Known: true, Hash: host.Fingerprint(payload(m))}, entries[i].Position)
			_, before := m.MetaGetMut("n")
			require.Equal(t, !bare, before)
			m.SetError(context.Canceled)
			m = described(int32(i), m)
			n, _ := m.MetaGetMut("n")
			require.Equal(t, i, n)
			require.Equal(t, fmt.Sprintf(`{"n":%d}`, i), string(payload(m)))
			require.ErrorIs(t, m.GetError(), context.Canceled)
			require.Nil(t, bareOf(m), "it holds on to its batch")
		}
	}
}
