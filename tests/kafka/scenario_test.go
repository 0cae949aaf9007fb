package kafka

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/connect-windowed/connect-windowed/tests/drive"
	"github.com/connect-windowed/connect-windowed/tests/machine"
	"github.com/connect-windowed/connect-windowed/tests/oracle"
	"github.com/connect-windowed/connect-windowed/tests/random"
)

// scenario is a stream in a topic, the pipeline that reads it, and the topic that
// its rows go to.
type scenario struct {
	*cluster
	dir          string
	shape        random.Shape
	size         int // of a record, at least
	orders, rows string
	group        string
	alone        bool   // explicit partitions, no group
	access       string // more fields of input and output
	input        string // more fields of the input
	mark         string // more fields of the watermark
	output       string // more of the mapping before the output
	expected     []machine.Expected
	invalid      map[string]bool
	out          *tail
}

// stream is the shape of the streams of these tests: every row is within the delay
// of its partition, so that no cut and no crash may change the answer.
func stream(seed uint64, rows int) random.Shape {
	return random.Shape{Seed: seed, Rows: rows, Partitions: 4, Groups: 9, Delay: 20 * time.Second, Window: 10 * time.Second,
		Step: 2 * time.Second, Invalid: 0.03, Floats: true, Origin: int64(1_760_000_000 * time.Second)}
}

func newScenario(t *testing.T, c *cluster, shape random.Shape, size int) *scenario {
	t.Helper()
	s := &scenario{cluster: c, dir: t.TempDir(), shape: shape, size: size, orders: name(t, "orders"), rows: name(t, "rows"), group: name(t, "group"),
		mark: fmt.Sprintf(", partitions: %d", shape.Partitions)}
	c.create(t, s.orders, int32(shape.Partitions), nil)
	c.create(t, s.rows, 2, nil)
	s.answer()
	s.out = c.tail(t, s.rows)
	return s
}

// payload is an event as it stands in the topic.
func (s *scenario) payload(raw json.RawMessage) []byte {
	var text struct {
		Raw *string `json:"_raw"`
	}
	if json.Unmarshal(raw, &text) == nil && text.Raw != nil {
		return []byte(*text.Raw)
	}
	pad := s.size - len(raw) - len(`,"pad":""`)
	if pad <= 0 || raw[len(raw)-1] != '}' {
		return raw
	}
	return fmt.Appendf(nil, `%s,"pad":"%s"}`, raw[:len(raw)-1], strings.Repeat("x", pad))
}

// records are the stream in an order of arrival, in batches.
func (s *scenario) records() (batches [][]*kgo.Record) {
	for _, batch := range random.Cut(s.shape.Seed, s.shape.Events(), 24) {
		var records []*kgo.Record
		for _, e := range batch {
			records = append(records, &kgo.Record{Topic: s.orders, Partition: int32(e.Partition), Value: s.payload(e.Payload)})
		}
		batches = append(batches, records)
	}
	return batches
}

// fill puts the whole stream into the topic.
func (s *scenario) fill(t *testing.T) {
	t.Helper()
	s.produce(t, slices.Concat(s.records()...)...)
}

// feed puts the stream into the topic little by little. Its end is waited for by
// the function that it returns.
func (s *scenario) feed(t *testing.T, pause time.Duration) (wait func()) {
	done := make(chan error, 1)
	go func() {
		var err error
		for _, batch := range s.records() {
			if err = s.client.ProduceSync(t.Context(), batch...).FirstErr(); err != nil {
				break
			}
			time.Sleep(pause) // the pace of a live source
		}
		done <- err
	}()
	return func() {
		t.Helper()
		require.NoError(t, <-done)
	}
}

const window = `tumbling_window: { size: 10s, group_by: { k: this.k }, aggregates: { n: count(), values: count(this.v), sum: sum(this.v), min: min(this.v), max: max(this.v), avg: avg(this.v) } }`

// source is what the input reads: the topic as a member of a group, or by itself.
func (s *scenario) source() string {
	if s.alone {
		return fmt.Sprintf("topics: [ %q ]", fmt.Sprintf("%s:0-%d", s.orders, s.shape.Partitions-1))
	}
	return fmt.Sprintf("topics: [ %q ], consumer_group: %q, session_timeout: 2s, heartbeat_interval: 300ms, rebalance_timeout: 2s", s.orders, s.group)
}

// config is the pipeline.
func (s *scenario) config() string {
	return fmt.Sprintf(`
input:
  windowed:
    state: state
    input:
      redpanda: { seed_brokers: [ %q ], metadata_max_age: 2s, %s%s%s }
    processors:
      - watermark: { event_time: this.ts, unit: ms, delay: 20s%s }
      - %s
output:
  redpanda:
    seed_brokers: [ %q ]
    metadata_max_age: 2s
    topic: %q
    key: '${! @windowed_row_key | "none" }'%s
    metadata: { include_prefixes: [ windowed_, failed ] }
  processors:
    - mapping: |
        meta failed = if errored() { error() }
        %s
cache_resources:
  - label: state
    bbolt: { path: %q }
http: { enabled: false }
logger: { level: INFO, format: logfmt }
shutdown_timeout: 20s
`, s.Addr(), s.source(), s.access, s.input, s.mark, window, s.Addr(), s.rows, strings.Replace(s.access, ", ", "\n    ", 1), s.output, filepath.Join(s.dir, "state.db"))
}

// run starts a life.
func (s *scenario) run(t *testing.T) *process {
	t.Helper()
	return run(t, s.dir, s.config())
}

// complete waits until all rows came out.
func (s *scenario) complete(t *testing.T, p *process) {
	t.Helper()
	for deadline := time.Now().Add(patience); s.out.keys() < len(s.expected); {
		require.True(t, p.running(), "the process ended\n%s", p.tail())
		require.True(t, time.Now().Before(deadline), "%d of %d rows came out\n%s", s.out.keys(), len(s.expected), p.tail())
		s.out.poll(t.Context(), 200*time.Millisecond)
	}
}

// grow waits until more rows came out.
func (s *scenario) grow(t *testing.T, p *process, rows int) {
	t.Helper()
	before := len(s.out.records)
	for deadline := time.Now().Add(patience); len(s.out.records) < before+rows; {
		require.True(t, time.Now().Before(deadline), "no rows come out\n%s", p.tail())
		s.out.poll(t.Context(), 100*time.Millisecond)
	}
}

// finish lets a life come to the end of the stream, stops it and compares what
// came out.
func (s *scenario) finish(t *testing.T, p *process) {
	t.Helper()
	s.complete(t, p)
	// Where a life before this one had brought everything it may not listen yet.
	require.Contains(t, []int{0, -1}, p.term(), "exit status\n%s", p.tail())
	s.verify(t)
}

// answer asks the oracle.
func (s *scenario) answer() {
	s.invalid = map[string]bool{}
	var all []random.Event
	var partitions []string
	for p, events := range s.shape.Events() {
		all = append(all, events...)
		partitions = append(partitions, fmt.Sprintf("p%d", p))
	}
	for _, e := range all {
		if e.Row.Invalid {
			s.invalid[string(s.payload(e.Payload))] = true
		}
	}
	q := oracle.Query{Sources: []oracle.Source{{Delay: int64(s.shape.Delay), Partitions: partitions}}, Size: int64(s.shape.Window)}
	for _, r := range q.Answer(random.Rows([][]random.Event{all})).Results {
		s.expected = append(s.expected, drive.Expected(r))
	}
}

// verify compares everything that is in the topic, by row key and last revision,
// with the oracle, and what was passed on with what the stream holds of it.
func (s *scenario) verify(t *testing.T) {
	t.Helper()
	s.out.rest(t, s.cluster, s.rows)
	byID, last, passed := map[string]string{}, map[string]entry{}, map[string]bool{}
	again := 0
	for _, e := range s.out.entries() {
		require.Empty(t, e.lateBy, "a row is late: %s", e.payload)
		if e.rowKey == "" {
			require.NotEmpty(t, e.failed, "a row passed through every operator: %s", e.payload)
			passed[e.payload] = true
			continue
		}
		require.Empty(t, e.failed, "%s", e.payload)
		require.Equal(t, "1", e.revision, "%s", e.rowID)
		if before, seen := byID[e.rowID]; seen {
			require.Equal(t, before, e.payload, "one row id, two rows: %s", e.rowID)
			again++
		}
		byID[e.rowID], last[e.rowKey] = e.payload, e
	}
	unit := machine.Run{Unit: "ns", Expected: s.expected, Tol: 1e-12, Loose: "avg"}
	var got []machine.Got
	for _, e := range last {
		got = append(got, machine.Got{Payload: []byte(e.payload)})
	}
	diff := unit.Compare(got)
	require.Empty(t, diff, "the topic does not hold the answer, seed %d:\n%.4000s", s.shape.Seed, diff)
	require.Equal(t, s.invalid, passed, "messages passed on with an error")
	t.Logf("%d rows, %d of them again", len(s.out.records), again)
}
