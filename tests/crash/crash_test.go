package crash

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/life"
	"github.com/connect-windowed/connect-windowed/windowing/host/failpoint"
)

// kills is how many kill -9 each row of the table below stands for.
func kills() int {
	switch {
	case soaks():
		return 400
	case race:
		return 6
	}
	return 45
}

// The sources and forms that promise an exact answer after a crash.
var scenarios = []struct {
	name string
	make func(t testing.TB, seed uint64) *scenario
}{
	{"topic to input windowed", func(t testing.TB, seed uint64) *scenario {
		return topic(t, inputHost, orders(seed, 2500, 4), 2*time.Millisecond)
	}},
	{"topic to processor windowed", func(t testing.TB, seed uint64) *scenario {
		return topic(t, processorHost, orders(seed, 2500, 4), 2*time.Millisecond)
	}},
	{"topic to operators", func(t testing.TB, seed uint64) *scenario {
		return topic(t, standalone, orders(seed, 2500, 4), 2*time.Millisecond)
	}},
	{"topic to operators in a row", func(t testing.TB, seed uint64) *scenario {
		s := topic(t, standalone, orders(seed, 2500, 4), 2*time.Millisecond)
		s.op = passesAll + "\n    - " + strings.Replace(window, "%s", "%[1]s", 1)
		return s
	}},
	{"topic to input windowed with little memory", func(t testing.TB, seed uint64) *scenario {
		s := topic(t, inputHost, orders(seed, 2500, 4), 2*time.Millisecond)
		s.budget = tight
		return s
	}},
	{"lines to input windowed", func(t testing.TB, seed uint64) *scenario {
		return lines(t, "lines: {}", orders(seed, 5000, 1))
	}},
	{"batches of lines to input windowed", func(t testing.TB, seed uint64) *scenario {
		return lines(t, smallBatches, orders(seed, 5000, 1))
	}},
}

// passesAll is an operator that keeps what it has seen, and lets all of it pass.
const passesAll = `watermark_dedupe: { %[1]skey: this, within: 10h }`

// smallBatches is a scanner that makes many steps of a file.
const smallBatches = "lines_batch: { max_batch_size: 15 }"

// total counts the kills of the whole package, for the log.
var total atomic.Int64

// The union of all outputs is the answer, however often the process is killed.
func TestKilledAtRandom(t *testing.T) {
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base := life.Seed(t)
			killed := 0
			for round := uint64(0); killed < kills(); round++ {
				s := c.make(t, base+round)
				s.refuse = 0.2
				killed += s.killAtRandom(t, rand.New(rand.NewPCG(base, round)), kills()-killed)
				s.verify(t)
			}
			t.Logf("%d kills, %d in all", killed, total.Load())
		})
	}
}

// killAtRandom kills lives until one ends by itself, or the limit is reached and
// a last life finishes.
func (s *scenario) killAtRandom(t *testing.T, rnd *rand.Rand, limit int) (killed int) {
	t.Helper()
	for killed < limit && !s.ending(t) {
		p := s.run(t, "")
		if rnd.IntN(10) == 0 {
			p.ready()
			time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond)
			require.Contains(t, []int{0, -1}, p.term(), "exit status of a graceful stop\n%s", p.Log)
			continue
		}
		if !p.killAfter(time.Duration(rnd.ExpFloat64() * float64(30*time.Millisecond))) {
			return killed
		}
		killed++
		total.Add(1)
	}
	s.finish(t)
	return killed
}

// The same at every named moment.
func TestKilledAtEveryPoint(t *testing.T) {
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base := life.Seed(t)
			rnd := rand.New(rand.NewPCG(base, 0))
			s := c.make(t, base)
			s.refuse = 0.1
			hit := map[string]int{}
			for round := range rounds() {
				for _, point := range failpoint.Names() {
					n := 1
					if point != failpoint.OnStart {
						n += rnd.IntN(1 + 6*round)
					}
					p := s.run(t, fmt.Sprintf("%s:%d", point, n))
					if p.killedWithin(300 * time.Millisecond) {
						hit[point]++
						total.Add(1)
					}
				}
			}
			s.finish(t)
			s.verify(t)
			t.Logf("hit %v, %d kills in all", hit, total.Load())
			for _, point := range s.reachable() {
				require.Positive(t, hit[point], "%s was never reached", point)
			}
		})
	}
}

// reachable are the points that every life of some length comes to. A processor
// acknowledges by returning, and has nothing to deliver.
func (s *scenario) reachable() []string {
	points := []string{failpoint.OnStart, failpoint.MidClose, failpoint.BeforeCommit, failpoint.AfterCommit, failpoint.MidFold}
	if s.form == inputHost {
		points = append(points, failpoint.BeforeAck, failpoint.AfterAck, failpoint.AfterDeliver)
	}
	return points
}

func rounds() int {
	switch {
	case soaks():
		return 12
	case race:
		return 1
	}
	return 2
}

// killedWithin says whether a failpoint killed the process. One that does not
// come to it in time is stopped.
func (p *process) killedWithin(d time.Duration) bool {
	p.t.Helper()
	p.ready()
	select {
	case <-p.Exited:
		code := p.status()
		require.Contains(p.t, []int{0, -1}, code, "exit status\n%s", p.Log)
		return code == -1
	case <-time.After(d):
		code := p.term() // on the way to the end it may still come to its point
		require.Contains(p.t, []int{0, -1}, code, "exit status of a graceful stop\n%s", p.Log)
		return code == -1
	}
}
