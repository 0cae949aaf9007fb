package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// topic is a source of several partitions that sends again what was not
// acknowledged, and now and then what was.
type topic struct {
	rnd  *rand.Rand
	logs [][]*note
	next []int // what is sent next, by partition

	// mu protects acked.
	mu    sync.Mutex
	acked []map[int]bool
}

// stressDelay is how far events lie behind the newest of their partition at most,
// so that none is late.
const stressDelay = 20 * time.Second

func newTopic(rnd *rand.Rand, partitions int) *topic {
	s := &topic{rnd: rnd}
	for p := range partitions {
		var log []*note
		for i := range int64(50 + rnd.IntN(400)) {
			late := watermark.Time(rnd.Int64N(int64(stressDelay)))
			n := &note{at: watermark.Time(i)*second - late, partition: fmt.Sprint("p", p), n: 1,
				key: fmt.Sprintf("%c%d", 'a'+rnd.IntN(3), rnd.IntN(1+rnd.IntN(40)))}
			log = append(log, n)
		}
		s.logs, s.next, s.acked = append(s.logs, log), append(s.next, 0), append(s.acked, map[int]bool{})
	}
	return s
}

// batch is some messages of some partitions, at most n of each. A host that is
// dead acknowledges nothing.
func (s *topic) batch(d *disk, n int) *Batch {
	b := &Batch{}
	type piece struct{ partition, from, to int }
	var pieces []piece
	for range 1 + s.rnd.IntN(3) {
		p := s.rnd.IntN(len(s.logs))
		from := s.next[p]
		to := min(len(s.logs[p]), from+s.rnd.IntN(n+1))
		if from == to {
			continue
		}
		s.next[p] = to
		one := events(int64(from), s.logs[p][from:to]...)
		for i := range one.Rows {
			one.Rows[i].Entry += int32(len(b.Entries))
		}
		b.Rows, b.Entries, b.Bytes = append(b.Rows, one.Rows...), append(b.Entries, one.Entries...), b.Bytes+one.Bytes
		pieces = append(pieces, piece{p, from, to})
	}
	b.Lag = s.rnd.IntN(2) == 0
	b.Ack = func() {
		if d.killed() {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, piece := range pieces {
			for i := piece.from; i < piece.to; i++ {
				s.acked[piece.partition][i] = true
			}
		}
	}
	return b
}

// rewind goes back to what was not acknowledged, or further.
func (s *topic) rewind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.logs {
		i := 0
		for s.acked[p][i] {
			i++
		}
		s.next[p] = i
		if s.rnd.IntN(4) == 0 {
			s.next[p] = s.rnd.IntN(i + 1)
		}
	}
}

func (s *topic) sent() bool {
	for p := range s.logs {
		if s.next[p] < len(s.logs[p]) {
			return false
		}
	}
	return true
}

// windowOf is the number of the window that holds a time.
func windowOf(t watermark.Time) int64 { return int64(t.Floor(10*time.Second, 0) / (10 * second)) }

// consumer takes rows in several goroutines, refuses some, and keeps all it took.
type consumer struct {
	t       testing.TB
	refusal float64
	busy    sync.WaitGroup

	// mu protects all below.
	mu      sync.Mutex
	rnd     *rand.Rand
	rows    []*note
	refused map[string]int // how often, by row id
	from    *Host          // whose rows are taken, nil: nobody's
}

// run takes the rows of a host, and no others any more. nil: of nobody.
func (c *consumer) run(h *Host) {
	c.mu.Lock()
	c.from = h
	c.mu.Unlock()
	if h == nil {
		return
	}
	for range 3 {
		c.busy.Go(func() {
			for {
				d, err := h.Next(context.Background())
				if err != nil {
					return
				}
				if c.pause() {
					c.busy.Go(func() { c.take(d) }) // settled by another, later
					continue
				}
				c.take(d)
			}
		})
	}
}

func (c *consumer) pause() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rnd.IntN(3) == 0
}

func (c *consumer) take(d *Delivery) {
	c.mu.Lock()
	if d.host != c.from {
		c.mu.Unlock()
		return
	}
	var failed []int
	whole := c.rnd.Float64() < c.refusal/2
	for i, n := range notesOf(d) {
		// Not for ever: the waits double.
		if (whole || c.rnd.Float64() < c.refusal) && c.refused[n.id()] < 5 {
			c.refused[n.id()]++
			failed = append(failed, i)
		} else {
			c.rows = append(c.rows, n)
		}
	}
	c.mu.Unlock()
	runtime.Gosched()
	d.Settle(failed)
}

// stress is one random run.
type stress struct {
	t      *testing.T
	rnd    *rand.Rand
	rig    *rig
	topic  *topic
	reader *consumer
}

// shapes are the chains of the runs, with what a row is grouped by in the end.
var shapes = []struct {
	name   string
	stages func(partitions ...string) []windowing.Stage
	group  func(n *note) string
}{
	{"window", func(p ...string) []windowing.Stage {
		return []windowing.Stage{watermarkStage(stressDelay, p...), windowStage("w", 10*time.Second, wholeKey)}
	}, wholeKey},
	{"two windows", func(p ...string) []windowing.Stage {
		return []windowing.Stage{watermarkStage(stressDelay, p...), windowStage("w", 10*time.Second, wholeKey), windowStage("w2", 10*time.Second, firstLetter)}
	}, firstLetter},
	{"late rows", func(p ...string) []windowing.Stage {
		return []windowing.Stage{watermarkStage(0, p...), lateStage("w", 10*time.Second, time.Hour, wholeKey)}
	}, wholeKey},
	{"foreign stages", func(p ...string) []windowing.Stage {
		return []windowing.Stage{{Foreign: true}, watermarkStage(stressDelay, p...), {Foreign: true}, windowStage("w", 10*time.Second, wholeKey),
			{Foreign: true}, windowStage("w2", 10*time.Second, firstLetter), {Foreign: true}}
	}, firstLetter},
}

// Whatever happens, in the end every count is right, and rows of one id are the
// same.
func TestStress(t *testing.T) {
	rnd := newSeed(t)
	for i := range 12 {
		shape := shapes[i%len(shapes)]
		t.Run(fmt.Sprint(i, " ", shape.name), func(t *testing.T) {
			s := newStress(t, rand.New(rand.NewPCG(rnd.Uint64(), 1)), shape.stages)
			s.play()
			counts := map[string]int64{}
			for _, log := range s.topic.logs {
				for _, n := range log {
					counts[fmt.Sprint(windowOf(n.at), " ", shape.group(n))]++
				}
			}
			require.Equal(t, counts, s.result())
		})
	}
}

func newStress(t *testing.T, rnd *rand.Rand, stages func(partitions ...string) []windowing.Stage) *stress {
	s := &stress{t: t, rnd: rnd, topic: newTopic(rnd, 1+rnd.IntN(4))}
	var partitions []string
	for _, log := range s.topic.logs {
		partitions = append(partitions, log[0].partition)
	}
	limits := Limits{MailboxRows: 1 + rnd.Int64N(500), CommitRows: 1 + rnd.IntN(300), PendingRows: 1 + rnd.IntN(600),
		UnreadRows: 1 + rnd.IntN(100), BatchRows: 1 + rnd.IntN(50)}
	s.rig = newRig(t, func() []windowing.Stage { return stages(partitions...) }, func(c *Config) {
		c.Flush, c.Limits = true, limits
		c.Foreign = func(_ context.Context, _ int, rows []windowing.Row) ([]windowing.Row, error) {
			runtime.Gosched()
			return rows, nil
		}
	})
	s.rig.limit = 1 + rnd.IntN(40)
	s.reader = &consumer{t: t, refused: map[string]int{}, refusal: []float64{0, 0.05, 0.2}[rnd.IntN(3)], rnd: rand.New(rand.NewPCG(rnd.Uint64(), 2))}
	return s
}

// play sends the topic to its end, with everything that may go wrong in between.
func (s *stress) play() {
	s.start()
	for _, log := range s.topic.logs { // an end must not find a partition that never spoke
		s.rig.wait(s.rig.offer(events(0, log[0])), "the commit")
	}
	for step := 0; !s.topic.sent() || step < 60; step++ {
		s.offer()
		switch s.rnd.IntN(30) {
		case 0:
			s.kill()
		case 1:
			s.rig.close()
			s.start()
		case 2:
			s.end()
			s.start()
		case 3:
			s.rig.disk.FailNext(s.rnd.IntN(3))
		case 4:
			s.rig.disk.FailAfterNext(s.rnd.IntN(2))
		case 5, 6:
			s.rig.clock.pass(time.Duration(s.rnd.Int64N(int64(10 * time.Second))))
		case 7:
			s.topic.rewind()
		}
	}
	s.end()
	s.start()
	for !s.topic.sent() {
		s.offer()
	}
	s.end()
	s.reader.busy.Wait()
	require.Zero(s.t, s.rig.disk.keys(s.t, outboxPrefix))
}

func (s *stress) start() {
	s.rig.disk.FailNext(0) // a start is an error where the disk fails
	s.rig.disk.FailAfterNext(0)
	s.rig.open()
	s.reader.run(s.rig.Host)
	s.topic.rewind()
}

// kill stops dead and starts again.
func (s *stress) kill() {
	s.reader.run(nil)
	dead := s.rig
	s.rig = s.rig.kill()
	dead.close()
	s.reader.run(s.rig.Host)
	s.topic.rewind()
}

func (s *stress) offer() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(s.t, s.rig.Offer(ctx, s.topic.batch(s.rig.disk, 1+s.rnd.IntN(60))))
}

// end plays to the natural end of what was sent.
func (s *stress) end() {
	s.rig.end()
	s.rig.wait(s.rig.ended, "the end")
	s.rig.close()
}

// result is what a sink that keeps the last revision of every row has.
func (s *stress) result() map[string]int64 {
	s.reader.mu.Lock()
	defer s.reader.mu.Unlock()
	byID(s.t, nil, s.reader.rows)
	got, newest := map[string]int64{}, map[string]int64{}
	for _, n := range s.reader.rows {
		if n.revision >= newest[n.rowKey] {
			newest[n.rowKey] = n.revision
			got[fmt.Sprint(windowOf(n.at), " ", n.key)] = n.n
		}
	}
	return got
}
