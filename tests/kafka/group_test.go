package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// family is a consumer group of instances of one pipeline, each with its own state
// file, and a live topic whose groups follow its partitions. Each record has a
// number, and each row lists the numbers that it counts.
type family struct {
	*cluster
	dirs         map[string]string
	orders, rows string
	group        string
	input        string // more fields of the input; %s is the instance
	mark         string // more fields of the watermark
	out          *tail
	sent         atomic.Int64 // records with a number
	closing      atomic.Bool  // records that only move the watermark
	stop         context.CancelFunc
	done         chan error
}

const familyPartitions = 4

func newFamily(t *testing.T, c *cluster, input string) *family {
	t.Helper()
	f := &family{cluster: c, dirs: map[string]string{}, orders: name(t, "orders"), rows: name(t, "rows"), group: name(t, "group"), input: input, mark: ", idle_timeout: 1s", done: make(chan error, 1)}
	c.create(t, f.orders, familyPartitions, nil)
	c.create(t, f.rows, 1, nil)
	f.out = c.tail(t, f.rows)
	return f
}

// begin lets records flow, once a number of members share the partitions.
func (f *family) begin(t *testing.T, members int) {
	t.Helper()
	f.shared(t, members)
	var ctx context.Context
	ctx, f.stop = context.WithCancel(t.Context())
	go func() { f.done <- f.live(ctx) }()
	t.Cleanup(f.stop)
}

// shared waits until a number of members share the partitions.
func (f *family) shared(t *testing.T, members int) {
	t.Helper()
	require.Eventually(t, func() bool {
		groups, err := f.admin.DescribeGroups(t.Context(), f.group)
		if err != nil || len(groups[f.group].Members) != members {
			return false
		}
		assigned := 0
		for _, m := range groups[f.group].Members {
			of, ok := m.Assigned.AsConsumer()
			if !ok || len(of.Topics) == 0 {
				return false
			}
			assigned += len(of.Topics[0].Partitions)
		}
		return assigned == familyPartitions
	}, patience, 50*time.Millisecond, "%d members of %s", members, f.group)
}

// live writes a batch every 20 ms, a second of event time each.
func (f *family) live(ctx context.Context) error {
	for second := int64(1_760_000_000); ctx.Err() == nil; second++ {
		var batch []*kgo.Record
		for p := range int64(familyPartitions) {
			value := fmt.Sprintf(`{"ts":%d,"k":"tick%d"}`, second, p)
			if !f.closing.Load() {
				value = fmt.Sprintf(`{"ts":%d,"k":"k%d","id":%d}`, second, p*10+second%3, f.sent.Add(1))
			}
			batch = append(batch, &kgo.Record{Topic: f.orders, Partition: int32(p), Value: []byte(value)})
		}
		if err := f.client.ProduceSync(context.WithoutCancel(ctx), batch...).FirstErr(); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // the pace of a live source
	}
	return nil
}

// run starts a life of an instance.
func (f *family) run(t *testing.T, instance string) *process {
	t.Helper()
	if f.dirs[instance] == "" {
		f.dirs[instance] = t.TempDir()
	}
	dir, input := f.dirs[instance], strings.ReplaceAll(f.input, "%s", instance)
	return run(t, dir, fmt.Sprintf(`
input:
  windowed:
    state: state
    input:
      redpanda: { seed_brokers: [ %q ], topics: [ %q ], consumer_group: %q, heartbeat_interval: 200ms, rebalance_timeout: 2s%s }
    processors:
      - watermark: { event_time: this.ts, delay: 30s, startup_grace: 500ms%s }
      - tumbling_window: { size: 10s, group_by: { k: this.k }, aggregates: { ids: collect(this.id) }, late: pass }
output:
  redpanda:
    seed_brokers: [ %q ]
    topic: %q
    key: '${! @windowed_row_key | "none" }'
    metadata: { include_prefixes: [ windowed_, instance ] }
  processors:
    - mapping: 'meta instance = %q'
cache_resources:
  - label: state
    bbolt: { path: %q }
http: { enabled: false }
logger: { level: INFO, format: logfmt }
`, f.Addr(), f.orders, f.group, input, f.mark, f.Addr(), f.rows, instance, filepath.Join(dir, "state.db")))
}

// account says how often each record is counted or came out late, by what stands
// in the topic of rows, and the row keys that more than one instance has written.
type account struct {
	times  []int
	late   int
	shared map[string]bool
}

func (f *family) account(t *testing.T) (a account) {
	t.Helper()
	type place struct{ instance, key string }
	last := map[place]string{}
	a = account{times: make([]int, f.sent.Load()+1), shared: map[string]bool{}}
	owner := map[string]string{}
	for _, e := range f.out.entries() {
		if e.rowKey == "" {
			require.NotEmpty(t, e.lateBy, "neither a row nor late: %s", e.payload)
			var row struct{ ID int }
			require.NoError(t, json.Unmarshal([]byte(e.payload), &row))
			if row.ID > 0 {
				a.late++
			}
			a.times[row.ID]++
			continue
		}
		if before, seen := owner[e.rowKey]; seen && before != e.instance {
			a.shared[e.rowKey] = true
		}
		owner[e.rowKey] = e.instance
		at := place{e.instance, e.rowKey}
		if before, seen := last[at]; seen {
			require.Equal(t, before, e.payload, "one row of one instance, two payloads: %s", e.rowKey)
		}
		last[at] = e.payload
	}
	for _, payload := range last {
		var row struct{ Ids []int }
		require.NoError(t, json.Unmarshal([]byte(payload), &row), payload)
		for _, id := range row.Ids {
			a.times[id]++
		}
	}
	return a
}

// missing is how many records are not in the account.
func (a account) missing() (n int) {
	for _, times := range a.times[1:] {
		if times == 0 {
			n++
		}
	}
	return n
}

// twice are the records that count more than once.
func (a account) twice() (ids []int) {
	for id, times := range a.times {
		if id > 0 && times > 1 {
			ids = append(ids, id)
		}
	}
	return ids
}

// grow lets the family make progress.
func (f *family) grow(t *testing.T, rows int, members ...*process) {
	t.Helper()
	before := len(f.out.records)
	for deadline := time.Now().Add(patience); len(f.out.records) < before+rows; {
		for _, p := range members {
			require.True(t, p.running(), "%s", p.tail())
		}
		require.True(t, time.Now().Before(deadline), "no rows\n%s", members[len(members)-1].tail())
		f.out.poll(t.Context(), 100*time.Millisecond)
	}
}

// settle closes all windows and gives the account of everything that was sent.
func (f *family) settle(t *testing.T, members ...*process) account {
	t.Helper()
	f.closing.Store(true)
	var a account
	for deadline := time.Now().Add(patience); ; {
		if a = f.account(t); a.missing() == 0 {
			break
		}
		require.True(t, time.Now().Before(deadline), "%d of %d records are lost\n%s", a.missing(), f.sent.Load(), members[0].tail())
		f.out.poll(t.Context(), 200*time.Millisecond)
	}
	for _, p := range members {
		require.Zero(t, p.term(), "%s", p.tail())
	}
	f.stop()
	require.NoError(t, <-f.done)
	f.out.rest(t, f.cluster, f.rows)
	a = f.account(t)
	t.Logf("%d records, %d late, %d twice, %d row keys written by more than one instance", f.sent.Load(), a.late, len(a.twice()), len(a.shared))
	return a
}

// Members that join and leave in an orderly way: what the group counts as a whole
// is every record once. A window that was open when its partition moved comes out in
// parts, under one row key.
func TestMembersJoinAndLeave(t *testing.T) {
	t.Parallel()
	f := newFamily(t, open(t), ", session_timeout: 5s")
	a := f.run(t, "a")
	f.begin(t, 1)
	f.grow(t, 20, a)
	b := f.run(t, "b")
	f.grow(t, 40, a, b)
	a.says("go to another member", f.orders, "holds", "windows", "hold the watermark back for 1m0s at most", "instance_id")
	b.says("are read here without state", f.orders)
	require.Zero(t, b.term(), "%s", b.tail())
	require.NotContains(t, b.Log.String(), "go to another member", "a stop is no move")
	f.grow(t, 40, a)
	a.says("are read here, where their state is", f.orders)
	b = f.run(t, "b")
	f.grow(t, 40, a, b)
	got := f.settle(t, a, b)
	require.Empty(t, got.twice())
	require.NotEmpty(t, got.shared, "no window was open when its partition moved")
}

// Members with an identity come back to their partitions within the session: then a
// kill is what it is for a single instance.
func TestMemberWithIdentityKilled(t *testing.T) {
	t.Parallel()
	f := newFamily(t, open(t), ", instance_id: %s, session_timeout: 30s")
	a, b := f.run(t, "a"), f.run(t, "b")
	f.begin(t, 2)
	f.grow(t, 20, a, b)
	for range 3 {
		b.Kill()
		b = f.run(t, "b")
		f.grow(t, 20, a, b)
	}
	require.Zero(t, b.term(), "%s", b.tail())
	b = f.run(t, "b")
	f.grow(t, 20, a, b)
	got := f.settle(t, a, b)
	require.Empty(t, got.twice())
	require.Empty(t, got.shared, "a window came out in parts although no partition moved")
}

// A member without an identity that is killed loses its partitions to another,
// which starts where the group has committed: nothing is lost, and what the killed
// one had counted since then is counted by both.
func TestMemberWithoutIdentityKilled(t *testing.T) {
	t.Parallel()
	f := newFamily(t, open(t), ", session_timeout: 1s, commit_period: 1s")
	a, b := f.run(t, "a"), f.run(t, "b")
	f.begin(t, 2)
	f.grow(t, 40, a, b)
	b.Kill()
	f.grow(t, 60, a) // with all partitions in the end
	b = f.run(t, "b")
	f.grow(t, 40, a, b)
	// Two partitions, a record of each every 20 ms, for as long as commit_period and
	// what a slow machine adds to it.
	require.Less(t, len(f.settle(t, a, b).twice()), 600)
}
