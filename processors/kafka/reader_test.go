package kafka

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// numbers gives "from" to "to", without "to".
func numbers(from, to int) (found []string) {
	for i := from; i < to; i++ {
		found = append(found, fmt.Sprint(i))
	}
	return found
}

// committedAt gives the committed offset of a partition, -1 where there is none.
func committedAt(t *testing.T, cl *kgo.Client, group, topic string, partition int32) int64 {
	t.Helper()
	offsets, err := kadm.NewClient(cl).FetchOffsets(context.Background(), group)
	require.NoError(t, err)
	at, ok := offsets.Lookup(topic, partition)
	if !ok {
		return -1
	}
	return at.At
}

func TestEndToEndOrder(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(2, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 0, 1000)
	r := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g\nmax_yield_batch_bytes: 100B"))
	require.Equal(t, numbers(0, 1000), drainAll(t, r, 1000))
	require.NoError(t, r.Close(context.Background()))
	require.EqualValues(t, 1000, committedAt(t, cl, "g", "orders", 0))

	produce(t, cl, "orders", 0, 1000, 10)
	again := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g"))
	require.Equal(t, numbers(1000, 1010), drainAll(t, again, 10))
}

func TestOneBatchOfAPartitionAtATime(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 10, 20)
	r := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g\nmax_yield_batch_bytes: 10B"))
	batch, ack := read(t, r)
	require.Equal(t, numbers(10, 15), texts(t, batch))
	none, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := r.ReadBatch(none)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, ack(context.Background(), nil))
	batch, _ = read(t, r)
	require.Equal(t, numbers(15, 20), texts(t, batch))
	require.NoError(t, r.Close(context.Background()))
	require.EqualValues(t, 5, committedAt(t, cl, "g", "orders", 0))
}

func TestRefusedBatchComesAgain(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 0, 10)
	r := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g\nmax_yield_batch_bytes: 5B"))
	batch, ack := read(t, r)
	require.Equal(t, numbers(0, 5), texts(t, batch))
	require.NoError(t, ack(context.Background(), errors.New("no")))
	batch, ack = read(t, r)
	require.Equal(t, numbers(0, 5), texts(t, batch))

	partial := service.NewBatchError(batch, errors.New("no")).Failed(3, errors.New("no")).Failed(1, errors.New("no"))
	require.NoError(t, ack(context.Background(), partial))
	batch, ack = read(t, r)
	require.Equal(t, []string{"1", "3"}, texts(t, batch))
	require.NoError(t, ack(context.Background(), service.NewBatchError(batch, errors.New("no")).Failed(1, errors.New("no"))))
	batch, ack = read(t, r)
	require.Equal(t, []string{"3"}, texts(t, batch))
	require.NoError(t, ack(context.Background(), nil))
	batch, _ = read(t, r)
	require.Equal(t, numbers(5, 10), texts(t, batch))
	require.NoError(t, r.Close(context.Background()))
	require.EqualValues(t, 5, committedAt(t, cl, "g", "orders", 0))
}
