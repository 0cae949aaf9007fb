package kafka

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// listen has an input's complaints collected instead of logged.
func listen(r *reader) *lines {
	l := &lines{}
	r.nag.say = l.add
	return l
}

// eventually waits for something that no channel tells of.
func eventually(t *testing.T, holds func() bool, what string) {
	t.Helper()
	require.Eventually(t, holds, patience, 5*time.Millisecond, what)
}

func TestPatterns(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "logs_a", "logs_b", "logs_internal", "other"))
	cl := client(t, c)
	for i, topic := range []string{"logs_a", "logs_b", "logs_internal", "other"} {
		produce(t, cl, topic, 0, 10*i, 2)
	}
	r := connect(t, newInput(t, c, "regexp_topics_include: [ 'logs_.*' ]\nregexp_topics_exclude: [ internal ]\nconsumer_group: g"))
	got := drainAll(t, r, 4)
	slices.Sort(got)
	require.Equal(t, []string{"0", "1", "10", "11"}, got)

	_, err := kadm.NewClient(cl).CreateTopic(context.Background(), 1, 1, nil, "logs_new")
	require.NoError(t, err)
	produce(t, cl, "logs_new", 0, 70, 1)
	require.Equal(t, []string{"70"}, drainAll(t, r, 1))
}

func TestExplicitPartitions(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(4, "orders"))
	cl := client(t, c)
	for p := range 4 {
		produce(t, cl, "orders", int32(p), 10*p, 5)
	}
	r := connect(t, newInput(t, c, "topics: [ 'orders:0-1', 'orders:3:4' ]"))
	got := drainAll(t, r, 11)
	slices.Sort(got)
	require.Equal(t, []string{"0", "1", "10", "11", "12", "13", "14", "2", "3", "34", "4"}, got)
	require.NoError(t, r.Close(context.Background()))

	groups, err := kadm.NewClient(cl).ListGroups(context.Background())
	require.NoError(t, err)
	require.Empty(t, groups)
}

func TestStartOffsets(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 0, 5)
	for i, start := range []string{"start_offset: latest", "start_from_oldest: false"} {
		r := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: late-%d\n%s", i, start))
		eventually(t, func() bool { return len(r.joined.shelf.positions()) == 1 }, "assigned")
		from := 100 * (i + 1)
		// Until the client knows the end, a record may still stand before it.
		var got []string
		for n := 0; len(got) == 0; n++ {
			produce(t, cl, "orders", 0, from+n, 1)
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			if batch, _, err := r.ReadBatch(ctx); err == nil {
				got = texts(t, batch)
			}
			cancel()
		}
		require.Contains(t, numbers(from, from+1000), got[0])
		require.NoError(t, r.Close(context.Background()))
	}
	r := newInput(t, c, "topics: [ orders ]\nconsumer_group: none-yet\nstart_offset: committed")
	said := listen(r)
	connect(t, r)
	eventually(t, func() bool { return strings.Contains(said.text(), "use earliest or latest") }, "it says that nothing is consumed")
}

func TestMetadata(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	stamp := time.UnixMilli(1_700_000_000_123)
	require.NoError(t, cl.ProduceSync(context.Background(),
		&kgo.Record{Topic: "orders", Key: []byte("k"), Value: []byte("v"), Timestamp: stamp, Headers: []kgo.RecordHeader{
			{Key: "a", Value: []byte("first")}, {Key: "a", Value: []byte("last")}, {Key: "none"}, {Key: "empty", Value: []byte{}},
			{Key: "kafka_offset", Value: []byte("99")}, {Key: "kafka_partition", Value: []byte("99")}, {Key: "kafka_topic", Value: []byte("forged")}, {Key: "kafka_lag", Value: []byte("99")},
		}},
		&kgo.Record{Topic: "orders", Timestamp: stamp},
	).FirstErr())
	r := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g"))
	batch, _ := read(t, r)
	require.Len(t, batch, 2)
	want := map[string]any{"kafka_key": []byte("k"), "kafka_topic": "orders", "kafka_partition": 0, "kafka_offset": 0, "kafka_lag": int64(1),
		"kafka_timestamp_ms": stamp.UnixMilli(), "kafka_timestamp_unix": stamp.Unix(), "kafka_tombstone_message": false,
		"a": "last", "none": nil, "empty": ""}
	require.Equal(t, want, metadata(t, batch[0]))
	require.Equal(t, map[string]any{"kafka_key": []byte(nil), "kafka_topic": "orders", "kafka_partition": 0, "kafka_offset": 1, "kafka_lag": int64(0),
		"kafka_timestamp_ms": stamp.UnixMilli(), "kafka_timestamp_unix": stamp.Unix(), "kafka_tombstone_message": true}, metadata(t, batch[1]))
}

func metadata(t *testing.T, m *service.Message) map[string]any {
	t.Helper()
	found := map[string]any{}
	require.NoError(t, m.MetaWalkMut(func(key string, v any) error { found[key] = v; return nil }))
	return found
}

func TestRefusedWithoutReplayIsDropped(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 0, 10)
	r := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g\nmax_yield_batch_bytes: 5B\nauto_replay_nacks: false"))
	batch, ack := read(t, r)
	require.Equal(t, numbers(0, 5), texts(t, batch))
	require.NoError(t, ack(context.Background(), errors.New("no")))
	require.Equal(t, numbers(5, 10), drainAll(t, r, 5))
	require.NoError(t, r.Close(context.Background()))
	require.EqualValues(t, 10, committedAt(t, cl, "g", "orders", 0))
}

// TestBackPressure reads nothing of a partition for a while: what it has buffered is
// bounded, and the other partition goes on.
func TestBackPressure(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(2, "orders"))
	cl := client(t, c)
	for i := range 50 { // brokers send whole batches
		produce(t, cl, "orders", 0, 20*i, 20)
	}
	r := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g\nmax_yield_batch_bytes: 5B\npartition_buffer_bytes: 100B\nfetch_max_partition_bytes: 1KB"))
	stuck, ackStuck := read(t, r)
	s := r.joined
	look := func() (paused bool, bytes int) {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		l := s.shelf.lanes["orders"][0]
		return l.paused, l.bytes
	}
	eventually(t, func() bool { paused, _ := look(); return paused }, "the partition is paused")
	produce(t, cl, "orders", 1, 10_000, 500)
	require.Equal(t, numbers(10_000, 10_500), drainAll(t, r, 500))
	_, bytes := look()
	require.Less(t, bytes, 1500)
	require.NoError(t, ackStuck(context.Background(), nil))
	require.Equal(t, numbers(0, 1000), append(texts(t, stuck), drainAll(t, r, 1000-len(stuck))...))
}

func TestRecreatedTopic(t *testing.T) {
	for _, how := range []string{"topics: [ orders ]\nconsumer_group: g", "topics: [ 'orders:0' ]", "regexp_topics_include: [ 'ord.*' ]\nconsumer_group: g"} {
		t.Run(how, func(t *testing.T) {
			c := cluster(t, kfake.SeedTopics(1, "orders"))
			cl := client(t, c)
			admin := kadm.NewClient(cl)
			produce(t, cl, "orders", 0, 0, 10)
			r := connect(t, newInput(t, c, "topic_lag_refresh_period: 50ms\n%s", how))
			require.Equal(t, numbers(0, 10), drainAll(t, r, 10))
			_, err := admin.DeleteTopic(context.Background(), "orders")
			require.NoError(t, err)
			_, err = admin.CreateTopic(context.Background(), 1, 1, nil, "orders")
			require.NoError(t, err)
			again := client(t, c)
			produce(t, again, "orders", 0, 100, 5)
			require.Equal(t, numbers(100, 105), reread(t, r, 5))
		})
	}
}

// TestRecreatedTopicBesideAnother consumes explicit partitions, for which nobody
// keeps offsets: when one topic begins anew, the other goes on where it was.
func TestRecreatedTopicBesideAnother(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders", "other"))
	cl := client(t, c)
	admin := kadm.NewClient(cl)
	produce(t, cl, "orders", 0, 0, 10)
	produce(t, cl, "other", 0, 50, 3)
	r := newInput(t, c, "topics: [ 'orders:0:4', 'other:0:0', 'orders:3' ]\ntopic_lag_refresh_period: 50ms\nstart_offset: latest")
	said := listen(r)
	connect(t, r)
	require.ElementsMatch(t, append(numbers(4, 10), numbers(50, 53)...), drainAll(t, r, 9))
	eventually(t, func() bool {
		return strings.Contains(said.text(), "topics: orders:3: the topic has no such partition, only 0 to 0")
	}, "it says so")
	_, err := admin.DeleteTopic(context.Background(), "orders")
	require.NoError(t, err)
	_, err = admin.CreateTopic(context.Background(), 1, 1, nil, "orders")
	require.NoError(t, err)
	produce(t, client(t, c), "orders", 0, 100, 5)
	require.Equal(t, numbers(100, 105), reread(t, r, 5), "from the start, although it says latest")
	produce(t, client(t, c), "orders", 0, 105, 2)
	produce(t, client(t, c), "other", 0, 53, 3)
	require.ElementsMatch(t, append(numbers(105, 107), numbers(53, 56)...), reread(t, r, 5))
}

// reread reads as a stream does: it connects again where there is no connection.
func reread(t *testing.T, r *reader, n int) (found []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for len(found) < n {
		batch, ack, err := r.ReadBatch(ctx)
		if errors.Is(err, service.ErrNotConnected) {
			require.NoError(t, r.Connect(ctx))
			continue
		}
		require.NoError(t, err)
		found = append(found, texts(t, batch)...)
		require.NoError(t, ack(ctx, nil))
	}
	return found
}

// TestRebalance has members come and go while messages flow: none is lost, and one
// that comes twice was not acknowledged the first time.
func TestRebalance(t *testing.T) {
	const partitions, room = 6, 1_000_000
	c := cluster(t, kfake.SeedTopics(partitions, "orders"))
	cl := client(t, c)
	counts := &ledger{acked: map[string]int{}}
	each, enough := 0, make(chan struct{})
	var feeding sync.WaitGroup
	feeding.Go(func() {
		for {
			for p := range partitions {
				if err := writeNumbers(cl, "orders", int32(p), p*room+each, 20); err != nil {
					t.Error(err)
					return
				}
			}
			each += 20
			select {
			case <-enough:
				return
			default:
			}
		}
	})
	first := member(t, c, counts)
	eventually(t, func() bool { return counts.of(first) > 500 }, "the first member reads")
	second := member(t, c, counts)
	eventually(t, func() bool { return counts.of(second) > 500 }, "the second member reads")
	first.stop()
	half := counts.size()
	eventually(t, func() bool { return counts.size() > half+500 }, "the second member takes over")
	third := member(t, c, counts)
	eventually(t, func() bool { return counts.of(third) > 500 }, "the third member reads")
	close(enough)
	feeding.Wait()
	eventually(t, func() bool { return counts.size() == partitions*each }, "all is read")
	second.stop()
	third.stop()
	for text, n := range counts.acked {
		require.Equal(t, 1, n, "message %s was acknowledged %d times", text, n)
	}
	for p := range partitions {
		require.EqualValues(t, each, committedAt(t, cl, "g", "orders", int32(p)))
	}
}

// ledger counts acknowledgements.
type ledger struct {
	mu    sync.Mutex
	acked map[string]int
	by    map[*running]int
}

func (l *ledger) add(m *running, found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[*running]int{}
	}
	l.by[m] += len(found)
	for _, text := range found {
		l.acked[text]++
	}
}

func (l *ledger) size() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.acked) }

func (l *ledger) of(m *running) int { l.mu.Lock(); defer l.mu.Unlock(); return l.by[m] }

// running is a member that reads and acknowledges on its own goroutines.
type running struct{ stop func() }

func member(t *testing.T, c *kfake.Cluster, counts *ledger) *running {
	t.Helper()
	r := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g\nmax_yield_batch_bytes: 50B\nheartbeat_interval: 50ms"))
	ctx, cancel := context.WithCancel(context.Background())
	m := &running{}
	var all, acks sync.WaitGroup
	all.Go(func() {
		for {
			batch, ack, err := r.ReadBatch(ctx)
			if err != nil {
				return
			}
			acks.Go(func() {
				var found []string
				for _, msg := range batch {
					b, _ := msg.AsBytes()
					found = append(found, string(b))
				}
				counts.add(m, found)
				_ = ack(context.Background(), nil)
			})
		}
	})
	m.stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		acks.Wait()
		_ = r.Close(context.Background())
	})
	t.Cleanup(m.stop)
	return m
}

func TestAcknowledgementAfterTheLossCommitsNothing(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 0, 10)
	r := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g\nmax_yield_batch_bytes: 5B"))
	_, ack := read(t, r)
	s := r.joined
	s.lost(context.Background(), s.client, map[string][]int32{"orders": {0}})
	require.NoError(t, ack(context.Background(), nil))
	require.NoError(t, r.Close(context.Background()))
	require.EqualValues(t, -1, committedAt(t, cl, "g", "orders", 0))
}

// TestRevocationWaitsForWhatIsInFlight takes a partition away while a batch of it is
// not acknowledged: nothing more is handed out, and the acknowledgement counts.
func TestRevocationWaitsForWhatIsInFlight(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	cl := client(t, c)
	produce(t, cl, "orders", 0, 10, 20)
	r := connect(t, newInput(t, c, "topics: [ orders ]\nconsumer_group: g\nmax_yield_batch_bytes: 10B"))
	_, ack := read(t, r)
	s, of := r.joined, map[string][]int32{"orders": {0}}
	done := make(chan struct{})
	go func() {
		s.revoked(context.Background(), s.client, of)
		close(done)
	}()
	eventually(t, func() bool {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		return s.shelf.lanes["orders"][0].frozen
	}, "the partition is frozen")
	p, _ := s.shelf.take(time.Now())
	require.Nil(t, p)
	select {
	case <-done:
		require.Fail(t, "it did not wait")
	default:
	}
	require.NoError(t, ack(context.Background(), nil))
	<-done
	require.EqualValues(t, 5, committedAt(t, cl, "g", "orders", 0))
	require.Empty(t, s.shelf.positions()["orders"])
}

func TestNamesOfPartitions(t *testing.T) {
	require.Equal(t, []string{"a/1", "a/2", "b/0"}, partitionNames(map[string][]int32{"b": {0}, "a": {2, 1}}))
	require.Empty(t, partitionNames(nil))
}
