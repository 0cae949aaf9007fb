package random

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/oracle"
)

func shape(seed uint64) Shape {
	return Shape{Seed: seed, Rows: 500, Partitions: 3, Groups: 14, Delay: 20 * time.Second, Window: 10 * time.Second,
		Step: 3 * time.Second, Invalid: 0.05, Floats: true, Holes: true}
}

func TestSameSeedSameStream(t *testing.T) {
	require.Equal(t, shape(7).Events(), shape(7).Events())
	require.NotEqual(t, shape(7).Events(), shape(8).Events())
}

func TestOtherPayloadsAtTheSamePositions(t *testing.T) {
	a, other := shape(7), shape(7)
	other.Payload = 1
	differ := 0
	for p, events := range a.Events() {
		for i, e := range other.Events()[p] {
			require.Equal(t, events[i].Offset, e.Offset)
			if string(events[i].Payload) != string(e.Payload) {
				differ++
			}
		}
	}
	require.Greater(t, differ, 400)
}

// Without late rows the answer must not depend on how the stream is cut.
func TestCutsKeepOrderAndAnswer(t *testing.T) {
	s := shape(3)
	q := oracle.Query{Sources: []oracle.Source{{Delay: int64(s.Delay), Partitions: []string{"p0", "p1", "p2"}}}, Size: int64(s.Window)}
	var first []oracle.Result
	for seed := range uint64(10) {
		batches := Cut(seed, s.Events(), 1+int(seed)*7)
		last := map[int]int64{}
		for _, batch := range batches {
			for _, e := range batch {
				require.LessOrEqual(t, last[e.Partition], e.Offset)
				last[e.Partition] = e.Offset
			}
		}
		answer := q.Answer(Rows(batches))
		require.Empty(t, answer.Late)
		counted := map[oracle.Result]bool{}
		for i := range answer.Results {
			r := answer.Results[i]
			r.After, r.Sum, r.Min, r.Max = 0, nil, nil, nil
			require.False(t, counted[r])
			counted[r] = true
			answer.Results[i].After = 0
		}
		if first == nil {
			first = answer.Results
		}
		require.ElementsMatch(t, first, answer.Results)
	}
}
