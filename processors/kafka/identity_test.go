package kafka

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
)

// TestOffsetsOfAFormerTopic has offsets of a group that outlive their topic. What
// stands below them in the new topic is read.
func TestOffsetsOfAFormerTopic(t *testing.T) {
	for _, start := range []string{"earliest", "latest", "committed"} {
		c := cluster(t, kfake.SeedTopics(2, "orders"))
		cl := client(t, c)
		admin := kadm.NewClient(cl)
		produce(t, cl, "orders", 0, 0, 10)
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 7, LeaderEpoch: -1, Metadata: identity(kadm.TopicID{1})})
		offsets.Add(kadm.Offset{Topic: "orders", Partition: 1, At: 0, LeaderEpoch: -1, Metadata: "of another client"})
		require.NoError(t, admin.CommitAllOffsets(context.Background(), "g", offsets))
		r := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g\nstart_offset: %s", start))
		require.Equal(t, numbers(0, 10), drainAll(t, r, 10))
		require.NoError(t, r.Close(context.Background()))

		found, err := admin.FetchOffsets(context.Background(), "g")
		require.NoError(t, err)
		at, ok := found.Lookup("orders", 0)
		require.True(t, ok)
		require.EqualValues(t, 10, at.At)
		require.True(t, strings.HasPrefix(at.Metadata, identityMark) && at.Metadata != identity(kadm.TopicID{1}), at.Metadata)

		produce(t, cl, "orders", 0, 10, 5) // and its own offsets count
		again := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g\nstart_offset: %s", start))
		require.Equal(t, numbers(10, 15), drainAll(t, again, 5))
	}
}
