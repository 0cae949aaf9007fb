//go:build !servers

package kafka

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/connect-windowed/connect-windowed/tests/kafka/broker"
	"github.com/connect-windowed/connect-windowed/tests/life"
)

// faults are what a broker may answer now and then. Two of them are said although
// the records are stored.
var faults = []struct {
	key kmsg.Key
	err *kerr.Error
}{
	{kmsg.Produce, kerr.NotLeaderForPartition},
	{kmsg.Produce, kerr.NotEnoughReplicas},
	{kmsg.Produce, kerr.NotEnoughReplicasAfterAppend},
	{kmsg.Produce, kerr.RequestTimedOut},
	{kmsg.Produce, kerr.KafkaStorageError},
	{kmsg.Fetch, kerr.NotLeaderForPartition},
	{kmsg.Fetch, kerr.UnknownServerError},
	{kmsg.OffsetCommit, kerr.RebalanceInProgress},
	{kmsg.OffsetCommit, kerr.CoordinatorLoadInProgress},
	{kmsg.Heartbeat, kerr.NotCoordinator},
	{kmsg.Heartbeat, kerr.UnknownMemberID},
	{kmsg.JoinGroup, kerr.CoordinatorNotAvailable},
	{kmsg.FindCoordinator, kerr.CoordinatorNotAvailable},
	{kmsg.ListOffsets, kerr.LeaderNotAvailable},
}

// One in ten of the requests fails, in all ways that a pipeline may get over.
func TestRequestsFail(t *testing.T) {
	t.Parallel()
	n := life.Seed(t)
	s := newScenario(t, openOwn(t), stream(n, 3000), 170)
	s.input = ", commit_period: 100ms, auto_replay_nacks: false"
	wait := s.feed(t, 10*time.Millisecond)
	rnd := rand.New(rand.NewPCG(n, 0)) // of the goroutine of the cluster
	cluster := s.Broker.(*broker.Fake).Cluster()
	var handles []*kfake.FaultHandle
	for _, f := range faults {
		topic := ""
		if f.key == kmsg.Produce {
			topic = s.rows // the source is ours
		}
		handles = append(handles, cluster.Fault(kfake.Fault{Keys: []kmsg.Key{f.key}, Topic: topic, Err: f.err, Count: -1,
			When: func(kmsg.Request) bool { return rnd.IntN(10) == 0 }}))
	}
	p := s.run(t)
	wait()
	s.complete(t, p)
	hits := map[string]int{}
	for i, h := range handles {
		hits[faults[i].key.Name()+" "+faults[i].err.Message] = h.Hits()
		h.Remove()
	}
	t.Log(hits)
	require.Zero(t, p.term(), "exit status\n%s", p.tail())
	s.verify(t)
}
