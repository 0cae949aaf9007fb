package kafka

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// replays are the settings of the input that both have to be right.
var replays = []string{"", ", auto_replay_nacks: false"}

func TestTopicToTopic(t *testing.T) {
	for _, size := range []int{170, 1024} {
		for _, replay := range replays {
			t.Run(fmt.Sprintf("%d bytes%s", size, replay), func(t *testing.T) {
				t.Parallel()
				s := newScenario(t, open(t), stream(life.Seed(t), 3000), size)
				s.input = replay
				s.fill(t)
				s.finish(t, s.run(t))
			})
		}
	}
}

// What is in the topic is the answer, however often the process is killed: as a
// member of a group, and with explicit partitions, which are read from their start
// each time.
func TestKilledAtRandom(t *testing.T) {
	for name, source := range map[string]struct {
		alone bool
		input string
	}{
		"group":           {false, ", instance_id: a"},
		"group no replay": {false, ", instance_id: a, auto_replay_nacks: false"},
		"partitions":      {true, ", auto_replay_nacks: false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := life.Seed(t)
			rnd := rand.New(rand.NewPCG(n, 0))
			s := newScenario(t, open(t), stream(n, 3000), 170)
			s.alone, s.input = source.alone, source.input
			wait := s.feed(t, time.Duration(kills)*time.Millisecond)
			midway := 0
			for range kills / 2 {
				p := s.run(t)
				select {
				case <-p.Exited:
					require.Fail(t, "the process ended", "%s", p.tail())
				case <-time.After(100*time.Millisecond + time.Duration(rnd.ExpFloat64()*float64(300*time.Millisecond))):
				}
				p.Kill()
				before := len(s.out.records)
				if s.out.poll(t.Context(), 50*time.Millisecond); before < len(s.out.records) {
					midway++
				}
			}
			wait()
			s.finish(t, s.run(t))
			t.Logf("%d of %d lives had brought rows", midway, kills/2)
		})
	}
}
