package host

import (
	"context"
	"errors"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// patience is how long a test waits for what has to happen.
const patience = 2 * time.Minute

// second is the unit of event time in these tests.
const second = watermark.Time(time.Second)

// timeBinding is that of a watermark.
type timeBinding struct{ failing }

func (b timeBinding) Extract(rows []windowing.Row) {
	for i := range rows {
		if row := &rows[i]; row.Flag == windowing.Data {
			n := row.Message.(*note)
			row.Time, row.Source, row.Partition = n.at, 0, n.partition
		}
	}
}

func (timeBinding) Render(*windowing.Result) windowing.Message { panic("a watermark emits nothing") }

type failing struct{}

func (failing) Fail(m windowing.Message, err error) windowing.Message {
	n := *m.(*note)
	n.err = err.Error()
	return &n
}

// sumBinding is that of a window that counts n by key.
type sumBinding struct {
	failing
	key func(n *note) string
}

func (b sumBinding) Extract(rows []windowing.Row) {
	for i := range rows {
		if row := &rows[i]; row.Flag == windowing.Data {
			n := row.Message.(*note)
			row.Key = agg.String(b.key(n)).AppendKey(nil)
			row.Args = []agg.Value{agg.Int(n.n)}
		}
	}
}

func (sumBinding) Render(res *windowing.Result) windowing.Message {
	key, _, err := agg.DecodeKey(res.Key)
	if err != nil {
		panic(err)
	}
	if res.Timing == windowing.Deleted {
		return &note{at: res.Time, key: key.AsString()}
	}
	return &note{at: res.Time, key: key.AsString(), n: res.Values[0].AsInt()}
}

// watermarkStage takes the largest time less the delay, over declared partitions
// where there are some.
func watermarkStage(delay time.Duration, partitions ...string) windowing.Stage {
	cfg := watermark.Config{Sources: []watermark.SourceConfig{{Delay: delay, Partitions: partitions}}}
	return windowing.Stage{Name: "wm", Kind: "watermark", Watermark: &windowing.Watermark{Config: cfg}, Binding: timeBinding{}}
}

// windowStage sums n by key.
func windowStage(name string, size time.Duration, key func(n *note) string) windowing.Stage {
	return lateStage(name, size, 0, key)
}

// lateStage is one that revises its rows for a while.
func lateStage(name string, size, lateness time.Duration, key func(n *note) string) windowing.Stage {
	return havingStage(name, size, lateness, key, nil)
}

// havingStage is one that puts out some rows only.
func havingStage(name string, size, lateness time.Duration, key func(n *note) string, having func(n int64) bool) windowing.Stage {
	return earlyStage(name, size, lateness, 0, key, having)
}

// earlyStage is one that puts out rows before the end.
func earlyStage(name string, size, lateness, early time.Duration, key func(n *note) string, having func(n int64) bool) windowing.Stage {
	grid, err := windowing.NewTumbling(size, 0)
	if err != nil {
		panic(err)
	}
	call, err := agg.Parse("sum(this.n)")
	if err != nil {
		panic(err)
	}
	cfg := windowing.WindowConfig{Name: name, Assigner: grid, Lateness: lateness, Early: early,
		GroupBy: []windowing.GroupField{{Name: "key", Expr: "this.key"}}, Aggregates: []windowing.Aggregate{{Name: "n", Call: call}}}
	if having != nil {
		cfg.Having = func(res *windowing.Result) (bool, error) { return having(res.Values[0].AsInt()), nil }
	}
	w := windowing.NewWindow(cfg)
	return windowing.Stage{Name: name, Kind: "tumbling_window", Operator: w, Hold: 1, Binding: sumBinding{key: key},
		Revises: cfg.Revises(), Definition: w.Definition()}
}

func wholeKey(n *note) string { return n.key }

// passStage passes every row, so that what comes in comes out.
func passStage() windowing.Stage {
	return windowing.Stage{Name: "pass", Kind: "pass", Operator: passer{}, Binding: timeBinding{}}
}

type passer struct{}

func (passer) Process(_ windowing.Instant, rows []windowing.Row, out *windowing.Output) {
	for _, row := range rows {
		out.Pass(row)
	}
}

func (passer) Advance(windowing.Instant, int, *windowing.Output) bool { return true }
func (passer) Save(kv.Writer)                                         {}
func (passer) Load(kv.Reader) error                                   { return nil }

// sums are the usual stages: a window of ten seconds.
func sums() []windowing.Stage {
	return []windowing.Stage{watermarkStage(0), windowStage("w", 10*time.Second, wholeKey)}
}

// passes are stages that change nothing.
func passes() []windowing.Stage { return []windowing.Stage{watermarkStage(0), passStage()} }

// rig is a host under test with what surrounds it.
type rig struct {
	*Host
	t      testing.TB
	disk   *disk // nil: state in memory
	clock  *fakeClock
	log    *testLog
	meter  *testMeter
	stages func() []windowing.Stage
	change func(*Config)
	limit  int // rows in a part, 0: the default
	faults chan error
}

func newRig(t testing.TB, stages func() []windowing.Stage, change func(*Config)) *rig {
	return &rig{t: t, disk: newDisk(), clock: newClock(), log: &testLog{}, meter: newMeter(), stages: stages, change: change}
}

// config is that of the next host.
func (r *rig) config() Config {
	chain, err := windowing.NewChain(windowing.Config{Stages: r.stages(), Limit: r.limit,
		Start: watermark.Clock{Wall: r.clock.Wall(), Mono: r.clock.Mono()}})
	require.NoError(r.t, err)
	r.faults = make(chan error, 10)
	faults := r.faults
	cfg := Config{Name: "test", Chain: chain, Edge: noteEdge{}, Clock: r.clock, Log: r.log, Meter: r.meter,
		OnFault: func(err error) { faults <- err }}
	if r.disk != nil {
		cfg.Store = r.disk
	}
	if r.change != nil {
		r.change(&cfg)
	}
	return cfg
}

// open starts a host, which the end of the test closes.
func (r *rig) open() *rig {
	h, err := Open(r.config())
	require.NoError(r.t, err)
	r.Host = h
	r.t.Cleanup(func() { _ = h.Close(context.Background()) })
	return r
}

func (r *rig) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(r.t, r.Close(ctx), "Close hangs")
}

// reopen stops the host and starts another.
func (r *rig) reopen() *rig {
	r.close()
	return r.open()
}

// kill leaves the host behind as it is and goes on with a copy of its disk.
func (r *rig) kill() *rig {
	r.disk.kill()
	return r.backTo(r.disk.commits())
}

// backTo leaves the host behind and goes on with the disk as it was after the
// first n commits.
func (r *rig) backTo(n int) *rig {
	r.disk.kill()
	next := *r
	next.disk = r.disk.after(r.t, n)
	return next.open()
}

// events make a batch of messages at successive offsets of their partitions.
func events(from int64, notes ...*note) *Batch {
	b := &Batch{}
	for i, n := range notes {
		pos := Position{Partition: n.partition, Offset: from + int64(i), Known: true, Hash: Fingerprint([]byte(n.String()))}
		own := *n
		b.Rows = append(b.Rows, windowing.Row{Entry: int32(i), Time: watermark.Unset, Message: &own})
		b.Entries = append(b.Entries, Entry{Position: pos})
		b.Bytes += int64(len(n.String()))
	}
	return b
}

// at is an event that counts 1 for its key.
func at(t int64, key string) *note {
	return &note{at: watermark.Time(t) * second, key: key, n: 1}
}

// offer hands a batch over. acked is closed when it is acknowledged.
func (r *rig) offer(b *Batch) (acked chan struct{}) {
	acked = make(chan struct{})
	b.Ack = func() { close(acked) }
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(r.t, r.Offer(ctx, b))
	return acked
}

// wait waits for a channel to be closed.
func (r *rig) wait(c <-chan struct{}, what string) {
	select {
	case <-c:
	case <-time.After(patience):
		r.stuck("waited in vain for " + what)
	}
}

// stuck fails with what all goroutines do.
func (r *rig) stuck(what string) {
	var b strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&b, 2)
	require.FailNow(r.t, what, "%v\n%s", r.log.all(), b.String())
}

// next takes a delivery.
func (r *rig) next() *Delivery {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d, err := r.Next(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		r.stuck("no rows come")
	}
	require.NoError(r.t, err)
	return d
}

// take takes n rows and settles them.
func (r *rig) take(n int) (rows []*note) {
	for len(rows) < n {
		d := r.next()
		rows = append(rows, notesOf(d)...)
		d.Settle(nil)
	}
	require.Len(r.t, rows, n)
	return rows
}

func notesOf(d *Delivery) (rows []*note) {
	for _, m := range d.Messages {
		rows = append(rows, m.(*note))
	}
	return rows
}

// end ends the input.
func (r *rig) end() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(r.t, r.End(ctx))
}

// sink takes rows until the host has ended or is closed.
type sink struct {
	rig    *rig
	refuse func(rows []*note) []int
	gone   chan struct{}

	// mu protects all below.
	mu   sync.Mutex
	rows []*note // that were taken, in order
}

func (r *rig) sink(refuse func(rows []*note) []int) *sink {
	s := &sink{rig: r, refuse: refuse, gone: make(chan struct{})}
	go func() {
		defer close(s.gone)
		for {
			d, err := r.Next(context.Background())
			if err != nil {
				return
			}
			rows := notesOf(d)
			var failed []int
			if s.refuse != nil {
				failed = s.refuse(rows)
			}
			if r.disk == nil || !r.disk.killed() { // a killed host delivers what it only thinks is on disk
				s.took(rows, failed)
			}
			d.Settle(failed)
		}
	}()
	return s
}

func (s *sink) took(rows []*note, failed []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, n := range rows {
		if len(failed) > 0 && failed[0] == i {
			failed = failed[1:]
			continue
		}
		s.rows = append(s.rows, n)
	}
}

// ended waits for the end and gives what was taken.
func (s *sink) ended() []*note {
	s.rig.wait(s.gone, "the end")
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows
}
