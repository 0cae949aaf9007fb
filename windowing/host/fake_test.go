package host

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/statecache/kv/kvtest"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newSeed is random, or the one to be replayed: WINDOWED_SEED=... go test.
func newSeed(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	if text := os.Getenv("WINDOWED_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("WINDOWED_SEED=%d replays this", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// note is the message of these tests. The fields behind the line are what an exit
// writes onto it.
type note struct {
	at        watermark.Time
	partition string
	key       string
	n         int64
	err       string
	// -----------------------------------
	rowKey   string
	revision int64
	timing   string
}

// String is the payload.
func (n *note) String() string { return fmt.Sprintf("%d %s %s=%d", n.at, n.partition, n.key, n.n) }

// id tells rows apart.
func (n *note) id() string { return windowing.RowID(n.rowKey, n.revision) }

// noteEdge implements Edge.
type noteEdge struct{}

func (noteEdge) Exit(row *windowing.Row) windowing.Message {
	n := *row.Message.(*note)
	if row.Err != nil {
		n.err = row.Err.Error()
	}
	if m := row.Mark; m != nil {
		n.rowKey, n.revision, n.timing = m.RowKey, m.Revision, m.Timing.String()
	}
	return &n
}

func (noteEdge) Body(m windowing.Message) []byte { return []byte(m.(*note).String()) }

func (noteEdge) Append(b []byte, m windowing.Message) []byte {
	n := m.(*note)
	b = kv.AppendVarint(kv.AppendVarint(kv.AppendVarint(b, int64(n.at)), n.n), n.revision)
	for _, text := range []string{n.partition, n.key, n.err, n.rowKey, n.timing} {
		b = kv.AppendBlob(b, text)
	}
	return b
}

func (noteEdge) Decode(data []byte) (windowing.Message, error) {
	d := kv.NewDecoder(data)
	n := &note{at: watermark.Time(d.Varint()), n: d.Varint(), revision: d.Varint()}
	for _, text := range []*string{&n.partition, &n.key, &n.err, &n.rowKey, &n.timing} {
		*text = d.String()
	}
	return n, d.Done()
}

// fakeClock is a Clock that moves when it is told to.
type fakeClock struct {
	// mu protects all below.
	mu    sync.Mutex
	wall  watermark.Time
	mono  time.Duration
	waits map[chan time.Time]time.Duration
	asked int // calls of Until
}

func newClock() *fakeClock {
	return &fakeClock{wall: 1_700_000_000_000_000_000, mono: time.Hour, waits: map[chan time.Time]time.Duration{}}
}

func (c *fakeClock) Wall() watermark.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *fakeClock) Mono() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mono
}

func (c *fakeClock) Until(at time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	ready := make(chan time.Time, 1)
	if at <= c.mono {
		ready <- time.Time{}
		return ready, func() {}
	}
	c.waits[ready] = at
	return ready, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waits, ready)
	}
}

// pass moves the clock.
func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.mono = c.wall.Add(d), c.mono+d
	for ready, at := range c.waits {
		if at <= c.mono {
			delete(c.waits, ready)
			ready <- time.Time{}
		}
	}
}

// testLog collects what is logged.
type testLog struct {
	// mu protects lines.
	mu    sync.Mutex
	lines []string
}

func (l *testLog) add(level, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, level+": "+fmt.Sprintf(format, args...))
}

func (l *testLog) Infof(format string, args ...any)  { l.add("info", format, args...) }
func (l *testLog) Warnf(format string, args ...any)  { l.add("warn", format, args...) }
func (l *testLog) Errorf(format string, args ...any) { l.add("error", format, args...) }

func (l *testLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// testMeter adds up what is measured.
type testMeter struct {
	// mu protects all below.
	mu     sync.Mutex
	counts map[string]int64
	gauges map[string]int64
}

func newMeter() *testMeter {
	return &testMeter{counts: map[string]int64{}, gauges: map[string]int64{}}
}

func (m *testMeter) Count(name string, n int64, label string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[name] += n
	if label != "" {
		m.counts[name+"/"+label] += n
	}
}

func (m *testMeter) Gauge(name string, value int64, label string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gauges[name+label] = value
}

func (m *testMeter) Took(string, time.Duration) {}

func (m *testMeter) count(name string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[name]
}

// disk is a store whose commits are logged, so that a test can look at it while a
// host uses it, and go back to what it was after any of them.
type disk struct {
	*kvtest.Store

	// mu protects all below.
	mu   sync.Mutex
	log  [][]byte // commits that reached the store, in order
	dead bool     // nothing reaches the store any more, although it says so
}

func newDisk() *disk { return &disk{Store: kvtest.Memory()} }

func (d *disk) Commit(b *kv.Batch) error {
	if d.killed() {
		return nil
	}
	if err := d.Store.Commit(b); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, slices.Clone(b.Bytes()))
	return nil
}

// kill cuts the host off that uses the disk.
func (d *disk) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
}

func (d *disk) killed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

func (d *disk) commits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.log)
}

// after gives a disk as it was after the first n commits.
func (d *disk) after(t testing.TB, n int) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := newDisk()
	for _, data := range d.log[:n] {
		var b kv.Batch
		require.NoError(t, kv.ReadBatch(data, b.Put, b.Delete))
		require.NoError(t, old.Commit(&b))
	}
	return old
}

// now gives a copy of the disk.
func (d *disk) now(t testing.TB) *disk { return d.after(t, d.commits()) }

// keys counts the records under a prefix.
func (d *disk) keys(t testing.TB, prefix string) (n int) {
	require.NoError(t, d.Scan([]byte(prefix), kv.PrefixEnd([]byte(prefix)), func(_, _ []byte) error { n++; return nil }))
	return n
}
