package kafka

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// The broker goes away and comes back, in an orderly way and killed, while the
// pipeline reads from it and writes to it.
func TestBrokerStopsUnderLoad(t *testing.T) {
	t.Parallel()
	s := newScenario(t, openOwn(t), stream(life.Seed(t), 3000), 170)
	s.input = ", auto_replay_nacks: false"
	wait := s.feed(t, 10*time.Millisecond)
	p := s.run(t)
	start := time.Now()
	since := func(what string) { t.Logf("%5.1f s: %s", time.Since(start).Seconds(), what) }
	for _, end := range []func() error{s.Stop, s.Kill} {
		s.grow(t, p, 20)
		since("rows come")
		require.NoError(t, end())
		since("the broker is gone")
		time.Sleep(time.Second) // so long is it away
		require.True(t, p.running(), "%s", p.tail())
		require.NoError(t, s.Start())
		since("the broker is back")
	}
	wait()
	since("everything is in the topic")
	s.finish(t, p)
	since("everything came out")
}

// An output topic that refuses some rows gets the others, and those as well once
// it takes them.
func TestOutputTopicRefuses(t *testing.T) {
	t.Parallel()
	s := newScenario(t, open(t), stream(life.Seed(t), 400), 170)
	s.output = `meta windowed_pad = if @windowed_row_key != null && this.n % 2 == 0 { range(0, 100).map_each(uuid_v4()).join("") }`
	s.set(t, s.rows, "max.message.bytes", "1500") // a batch of two rows, or of one that is no pair
	s.fill(t)
	p := s.run(t)
	p.says(s.rows, "MESSAGE_TOO_LARGE")
	for deadline := time.Now().Add(patience); s.out.keys() < len(s.expected)/4; {
		require.True(t, time.Now().Before(deadline), "%d of %d rows came out\n%s", s.out.keys(), len(s.expected), p.tail())
		s.out.poll(t.Context(), 100*time.Millisecond)
	}
	require.Less(t, s.out.keys(), len(s.expected), "nothing was refused")
	require.True(t, p.running())
	s.set(t, s.rows, "max.message.bytes", "")
	s.finish(t, p)
}

// recreate puts a topic of the same name and of other payloads into the place of a
// scenario's. The offsets of the group may survive, as where brokers are restored.
func (s *scenario) recreate(t *testing.T, survive bool) {
	t.Helper()
	offsets, err := s.admin.FetchOffsets(t.Context(), s.group)
	require.NoError(t, err)
	_, err = s.admin.DeleteTopics(t.Context(), s.orders)
	require.NoError(t, err)
	// Brokers forget the offsets of its groups a moment later. Before that a member
	// would begin where the old topic ended.
	require.Eventually(t, func() bool { return s.committed(t, s.group, s.orders) == 0 }, patience, 100*time.Millisecond)
	s.create(t, s.orders, int32(s.shape.Partitions), nil)
	other := *s
	other.shape.Payload = 1
	other.fill(t)
	if survive {
		require.NoError(t, s.admin.CommitAllOffsets(t.Context(), s.group, offsets.Offsets()))
	}
}

// A topic that was created again has the same positions and other payloads: the
// process says so and ends, until somebody acts. It makes no difference whether it
// ran meanwhile, or whether the group's offsets are those of the former topic.
func TestTopicCreatedAgain(t *testing.T) {
	for name, how := range map[string]struct{ running, survive bool }{
		"while stopped":   {},
		"while running":   {running: true},
		"offsets survive": {survive: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, open(t), stream(life.Seed(t), 300), 170)
			s.fill(t)
			p := s.run(t)
			s.complete(t, p)
			if !how.running {
				require.Zero(t, p.term(), "%s", p.tail())
			}
			s.verify(t)
			rows := len(s.out.records)
			s.recreate(t, how.survive)
			before := s.committed(t, s.group, s.orders)
			for range 2 { // again and again
				if !p.running() {
					p = s.run(t)
				}
				require.Equal(t, 1, p.wait(), "exit status\n%s", p.tail())
				line := p.says("another payload was applied")
				for _, word := range []string{s.orders, "created again", "new name", "delete the state file", "put the old source back"} {
					require.Contains(t, line, word)
				}
				require.Equal(t, before, s.committed(t, s.group, s.orders), "acknowledged after the fault")
			}
			ends, err := s.admin.ListEndOffsets(t.Context(), s.rows)
			require.NoError(t, err)
			var total int64
			ends.Each(func(o kadm.ListedOffset) { total += o.Offset })
			require.EqualValues(t, rows, total, "rows of the other topic came out")
		})
	}
}

// A topic with a partition that nobody writes to.
func TestSilentPartition(t *testing.T) {
	t.Parallel()
	shape := stream(life.Seed(t), 1500)
	shape.Partitions = 3
	s := newScenario(t, open(t), shape, 170)
	s.orders = name(t, "silent")
	s.create(t, s.orders, 4, nil)
	s.mark = `, partitions: 4, idle_timeout: 2s`
	wait := s.feed(t, 10*time.Millisecond)
	p := s.run(t)
	wait()
	s.finish(t, p)
}
