package processors

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// positionsOf gives the positions of messages under a setting.
func positionsOf(t testing.TB, c positionConfig, batch ...*service.Message) ([]host.Position, map[int]error) {
	t.Helper()
	p, err := newPositioner(c)
	require.NoError(t, err)
	entries := make([]host.Entry, len(batch))
	_, errs := p.entries(batch, entries)
	var list []host.Position
	for _, e := range entries {
		list = append(list, e.Position)
	}
	return list, errs
}

func messageWith(payload string, meta map[string]any) *service.Message {
	m := service.NewMessage([]byte(payload))
	for key, value := range meta {
		m.MetaSetMut(key, value)
	}
	return m
}

func TestPositionsOfKafka(t *testing.T) {
	for _, c := range []struct {
		offset any
		want   int64
		known  bool
	}{
		{7, 7, true}, {int32(7), 7, true}, {int64(math.MaxInt64), math.MaxInt64, true}, {uint64(7), 7, true}, {"7", 7, true},
		{7.0, 7, true}, {json.Number("7"), 7, true}, {int64(-1), -1, true},
		{uint64(math.MaxUint64), 0, false}, {7.5, 0, false}, {1e300, 0, false}, {math.NaN(), 0, false}, {json.Number("7.5"), 0, false},
		{"seven", 0, false}, {"", 0, false}, {true, 0, false}, {nil, 0, false}, {[]any{7}, 0, false},
	} {
		list, errs := positionsOf(t, positionConfig{}, messageWith("x", map[string]any{"kafka_topic": "t", "kafka_partition": 3, "kafka_offset": c.offset}))
		require.Empty(t, errs)
		require.Equal(t, c.known, list[0].Known, "%#v", c.offset)
		if c.known {
			require.Equal(t, host.Position{Partition: "t/3", Offset: c.want, Known: true, Hash: host.Fingerprint([]byte("x"))}, list[0])
		}
	}
	for _, missing := range []string{"kafka_topic", "kafka_partition", "kafka_offset"} {
		meta := map[string]any{"kafka_topic": "t", "kafka_partition": 3, "kafka_offset": 7}
		delete(meta, missing)
		list, errs := positionsOf(t, positionConfig{}, messageWith("x", meta))
		require.Empty(t, errs)
		require.False(t, list[0].Known, missing)
	}
	list, _ := positionsOf(t, positionConfig{},
		messageWith("", map[string]any{"kafka_topic": "t", "kafka_partition": 1, "kafka_offset": 1}),
		messageWith("", map[string]any{"kafka_topic": "t", "kafka_partition": "1", "kafka_offset": 2}),
		messageWith("", map[string]any{"kafka_topic": "u", "kafka_partition": 1, "kafka_offset": 3}))
	require.Equal(t, []string{"t/1", "t/1", "u/1"}, []string{list[0].Partition, list[1].Partition, list[2].Partition})
}

func TestPositionsByExpression(t *testing.T) {
	c := positionConfig{partition: "@p", offset: "this.o"}
	list, errs := positionsOf(t, c,
		messageWith(`{"o":1}`, map[string]any{"p": 0}),
		messageWith(`{"o":"2"}`, map[string]any{"p": "0"}),
		messageWith(`{"o":null}`, map[string]any{"p": "0"}),
		messageWith(`{"o":3}`, nil),
		messageWith(`{"o":1.5}`, map[string]any{"p": "0"}),
		messageWith(`not JSON`, map[string]any{"p": "0"}))
	require.Equal(t, "0", list[0].Partition)
	require.Equal(t, list[0].Partition, list[1].Partition)
	require.Equal(t, []int64{1, 2}, []int64{list[0].Offset, list[1].Offset})
	require.Len(t, errs, 3)
	for i := 2; i < 6; i++ {
		require.False(t, list[i].Known, i)
		if i > 2 {
			require.ErrorContains(t, errs[i], "position.")
		}
	}
}

func TestPositionsByOrder(t *testing.T) {
	p, err := newPositioner(positionConfig{mode: host.Ordinal})
	require.NoError(t, err)
	var got []host.Position
	for _, paths := range [][]string{{"a", "a", "b"}, {"b", "a", ""}} {
		var batch service.MessageBatch
		for _, path := range paths {
			batch = append(batch, messageWith("x", map[string]any{"path": path}))
		}
		entries := make([]host.Entry, len(batch))
		p.entries(batch, entries)
		for _, e := range entries {
			e.Position.Hash = 0
			got = append(got, e.Position)
		}
	}
	at := func(path string, n int64) host.Position {
		return host.Position{Partition: path, Offset: n, Known: true}
	}
	require.Equal(t, []host.Position{at("a", 0), at("a", 1), at("b", 0), at("b", 1), at("a", 2), at("", 0)}, got)
}

// The fingerprint of a message without bytes is that of its JSON text.
func TestFingerprintOfStructuredMessages(t *testing.T) {
	m := service.NewMessage(nil)
	m.SetStructured(map[string]any{"b": 1, "a": "x"})
	list, _ := positionsOf(t, positionConfig{partition: "0", offset: "1"}, m, messageWith(`{"a":"x","b":1}`, nil), messageWith(`{"a":"y","b":1}`, nil))
	require.Equal(t, list[1].Hash, list[0].Hash)
	require.NotEqual(t, list[2].Hash, list[0].Hash)
}

// A row of an operator on its own brings its position, whatever is set; a message
// inside of a host has none of that kind.
func TestPositionsOfEmittedRows(t *testing.T) {
	at := host.Position{Partition: "tumbling_window w", Offset: 7, Known: true}
	emitted := func(inner bool) *service.Message {
		return carry(messageWith(`{"o":1}`, map[string]any{"kafka_topic": "t", "kafka_partition": 1, "kafka_offset": 1}),
			&carried{row: windowing.Row{}, pair: &pair{}, at: at, inner: inner})
	}
	for _, c := range []positionConfig{{}, {partition: "0", offset: "this.o"}, {mode: host.Ordinal}} {
		list, errs := positionsOf(t, c, emitted(false), emitted(true))
		require.Empty(t, errs)
		require.Equal(t, at.Partition, list[0].Partition)
		require.Equal(t, at.Offset, list[0].Offset)
		require.NotEqual(t, at.Partition, list[1].Partition)
	}
	list, _ := positionsOf(t, positionConfig{mode: host.None}, emitted(false))
	require.False(t, list[0].Known)
}

// A message that an operator in memory has passed on is known by its own position, and
// by that of the operator where it has none.
func TestPositionsOfPassedMessages(t *testing.T) {
	at := host.Position{Partition: passed + "watermark_dedupe d", Offset: 7, Known: true}
	m := carry(messageWith(`{"o":1}`, nil), &carried{pair: &pair{}, at: at})
	for _, c := range []struct {
		config    positionConfig
		partition string
	}{{positionConfig{partition: `"p"`, offset: "this.o"}, "p"}, {positionConfig{}, at.Partition}, {positionConfig{partition: `"p"`, offset: "this.missing"}, at.Partition}} {
		list, errs := positionsOf(t, c.config, m)
		require.Empty(t, errs)
		require.Equal(t, c.partition, list[0].Partition)
	}
}

func TestSettingOfPositionsAsText(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []positionConfig{{}, {mode: host.Ordinal}, {mode: host.None}, {partition: "a", offset: "b"}, {partition: "b", offset: "a"}} {
		require.False(t, seen[c.text()], c.text())
		seen[c.text()] = true
	}
}
