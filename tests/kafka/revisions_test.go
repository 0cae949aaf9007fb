package kafka

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// A topic that is compacted keeps the last record of a key. With one batch at a
// time that is the newest revision, also when the process was killed between.
func TestCompactedTopicEndsWithTheNewestRevision(t *testing.T) {
	t.Parallel()
	s := newScenario(t, open(t), stream(life.Seed(t), 2000), 170)
	s.rows = name(t, "compacted")
	s.create(t, s.rows, 4, map[string]string{"cleanup.policy": "compact"})
	s.out = s.tail(t, s.rows)
	s.input = ", instance_id: a, auto_replay_nacks: false"
	config := strings.Replace(s.config(), "tumbling_window: {", "tumbling_window: { output_mode: update,", 1)
	config = strings.Replace(config, "    topic: ", "    max_in_flight: 1\n    topic: ", 1) + "pipeline: { threads: 1 }\n"
	valid := 0
	for _, events := range s.shape.Events() {
		for _, e := range events {
			if !e.Row.Invalid {
				valid++
			}
		}
	}

	wait := s.feed(t, 20*time.Millisecond)
	for range 4 {
		p := run(t, s.dir, config)
		time.Sleep(500 * time.Millisecond) // somewhere in the middle
		require.True(t, p.running(), "%s", p.tail())
		p.Kill()
	}
	p := run(t, s.dir, config)
	wait()
	for deadline := time.Now().Add(patience); s.counted(t) < valid; {
		require.True(t, p.running() && time.Now().Before(deadline), "%d of %d counted\n%s", s.counted(t), valid, p.tail())
		s.out.poll(t.Context(), 200*time.Millisecond)
	}
	require.Zero(t, p.term(), "%s", p.tail())
	s.out.rest(t, s.cluster, s.rows)
	require.Equal(t, valid, s.counted(t))
}

// counted sums what the last records of all keys count. It is -1 while one of them is
// not the newest revision of its key, which may be on its way.
func (s *scenario) counted(t *testing.T) (n int) {
	t.Helper()
	last, newest := map[string]entry{}, map[string]int{}
	for _, e := range s.out.entries() {
		if e.rowKey == "" {
			continue
		}
		revision, err := strconv.Atoi(e.revision)
		require.NoError(t, err)
		last[e.rowKey], newest[e.rowKey] = e, max(newest[e.rowKey], revision)
	}
	for key, e := range last {
		if e.revision != strconv.Itoa(newest[key]) {
			return -1
		}
		var row struct{ N int }
		require.NoError(t, json.Unmarshal([]byte(e.payload), &row))
		n += row.N
	}
	return n
}
