package kafka

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// truncate has a topic drop its records below an offset, as retention does.
func truncate(t *testing.T, cl *kgo.Client, topic string, below int64) {
	t.Helper()
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: below})
	resp, err := kadm.NewClient(cl).DeleteRecords(context.Background(), offsets)
	require.NoError(t, err)
	require.NoError(t, resp.Error())
}

// TestRetentionOvertakes says which offsets a topic has dropped before they were
// read, whatever it was that said where to go on.
func TestRetentionOvertakes(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 0, 5)
	first := newInput(t, c, "topics: [ orders ]\nconsumer_group: g")
	said := listen(first)
	require.Equal(t, numbers(0, 5), drainAll(t, connect(t, first), 5))
	require.NoError(t, first.Close(context.Background()))
	require.Empty(t, said.text(), "nothing is missing")

	produce(t, cl, "orders", 0, 5, 5)
	truncate(t, cl, "orders", 8)
	for _, fields := range []string{"topics: [ 'orders:0:5' ]", "topics: [ orders ]\nconsumer_group: g"} {
		r := newInput(t, c, "%s", fields)
		said := listen(r)
		require.Equal(t, numbers(8, 10), drainAll(t, connect(t, r), 2), fields)
		require.Contains(t, said.text(), "topic orders, partition 0: offsets 5 to 7 are gone", fields)
		require.Equal(t, 1, strings.Count(said.text(), "gone"), fields)
		require.NoError(t, r.Close(context.Background()))
	}
	whole := newInput(t, c, "topics: [ 'orders:0' ]")
	said = listen(whole)
	require.Equal(t, numbers(8, 10), drainAll(t, connect(t, whole), 2))
	require.Empty(t, said.text(), "nobody asked for what was dropped")
}

// TestOffsetPastTheEnd says that a partition begins elsewhere than it was told.
func TestOffsetPastTheEnd(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	produce(t, client(t, c), "orders", 0, 0, 5)
	r := newInput(t, c, "topics: [ 'orders:0:1000' ]")
	said := listen(r)
	require.Equal(t, numbers(0, 5), drainAll(t, connect(t, r), 5))
	require.Contains(t, said.text(), "topic orders, partition 0: offset 1000, where it should go on, is past the end")
}
