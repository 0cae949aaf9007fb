package crash

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/crash/plugins"
	"github.com/connect-windowed/connect-windowed/tests/life"
	"github.com/connect-windowed/connect-windowed/windowing/host/failpoint"
)

// early is a scenario whose windows put out rows now and then before they are final.
func early(t testing.TB, seed uint64) *scenario {
	s := topic(t, inputHost, orders(seed, 2500, 4), 5*time.Millisecond)
	s.op = strings.Replace(window, "size: 10s", "size: 10s, early: 20ms", 1)
	s.refuse = 0.1
	return s
}

// Early rows have numbers that grow and are never used for another value, and the
// finals are the answer, wherever the process is killed.
func TestEarlyRowsSurviveKills(t *testing.T) {
	t.Parallel()
	base := life.Seed(t)
	rnd := rand.New(rand.NewPCG(base, 0))
	s := early(t, base)
	killed := 0
	points := []string{failpoint.BeforeCommit, failpoint.AfterCommit, failpoint.MidClose, failpoint.AfterDeliver, failpoint.MidFold}
	for range 4 * rounds() {
		for _, point := range points {
			if s.run(t, fmt.Sprintf("%s:%d", point, 1+rnd.IntN(12))).killedWithin(300 * time.Millisecond) {
				killed++
				total.Add(1)
			}
		}
	}
	s.finish(t)
	early := s.verifyRevisions(t)
	t.Logf("%d kills, %d early rows", killed, early)
	require.Positive(t, killed)
	require.Positive(t, early)
}

// verifyRevisions compares the last revision of each final row with the answer, and
// gives the number of early rows. Windows that are open at the end of the stream
// have early rows only.
func (s *scenario) verifyRevisions(t testing.TB) (early int) {
	t.Helper()
	byID, counts := map[string]string{}, map[string]map[int]float64{}
	last, passed := map[string]plugins.Entry{}, map[string]bool{}
	for _, e := range s.entries(t) {
		require.Empty(t, e.LateBy, "a row is late: %s", e.Payload)
		if e.RowKey == "" {
			passed[string(e.Payload)] = true
			continue
		}
		if before, seen := byID[e.RowID]; seen {
			require.Equal(t, before, string(e.Payload)+e.Timing, "one row id, two rows: %s", e.RowID)
			continue
		}
		byID[e.RowID] = string(e.Payload) + e.Timing
		revision, err := strconv.Atoi(e.Revision)
		require.NoError(t, err)
		var row struct{ N float64 }
		require.NoError(t, json.Unmarshal(e.Payload, &row))
		if counts[e.RowKey] == nil {
			counts[e.RowKey] = map[int]float64{}
		}
		counts[e.RowKey][revision] = row.N
		if e.Timing == "early" {
			early++
			continue
		}
		require.Equal(t, "on_time", e.Timing)
		require.NotContains(t, last, e.RowKey, "final twice")
		last[e.RowKey] = e
	}
	for key, of := range counts {
		final, highest := 0, 0
		if e, ok := last[key]; ok {
			final, _ = strconv.Atoi(e.Revision)
		}
		for revision := range of {
			highest = max(highest, revision)
			for other := range of {
				require.True(t, other > revision || of[other] <= of[revision], "%s: revision %d counts %v, revision %d %v", key, other, of[other], revision, of[revision])
			}
		}
		require.True(t, final == 0 || final == highest, "%s: the final row is revision %d of %d", key, final, highest)
	}
	s.compare(t, last, passed)
	return early
}
