package crash

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/crash/plugins"
	"github.com/connect-windowed/connect-windowed/tests/life"
)

// pairing is an operator that makes something of rows whose numbers belong
// together, and what comes out of a stream, by number: of one row, or of two.
type pairing struct {
	name, op, parts string
	answer          func(all []int) [][2]int
}

var pairings = []pairing{
	{
		name: "deduplication",
		op:   `watermark_dedupe: { %skey: (this.id / 3).floor(), within: 10h }`,
		answer: func(all []int) (rows [][2]int) {
			seen := map[int]bool{}
			for _, id := range all {
				if !seen[id/3] {
					rows = append(rows, [2]int{id, id})
				}
				seen[id/3] = true
			}
			return rows
		},
	},
	{
		name:  "join",
		op:    `interval_join: { %sleft: { source: even, key: (this.id / 2).floor() }, right: { source: odd, key: (this.id / 2).floor() }, lower: -10h, upper: 10h }`,
		parts: `, sources: { even: { when: this.id %% 2 == 0 }, odd: { when: this.id %% 2 == 1 } }`,
		answer: func(all []int) (rows [][2]int) {
			there := map[int]bool{}
			for _, id := range all {
				there[id] = true
			}
			for _, id := range all {
				if id%2 == 0 && there[id+1] {
					rows = append(rows, [2]int{id, id + 1})
				}
			}
			return rows
		},
	},
	{
		name:  "keyed state",
		parts: ", partitions: 1",
		op: `keyed_state: { %skey: (this.id / 2).floor(), on_event: 'root = if this.state == null { { "state": { "id": this.event.id } } } else { { "state": { "left": { "id": [ this.state.id, this.event.id ].min() }, "right": { "id": [ this.state.id, this.event.id ].max() } }, "timers": [ { "name": "both", "at": this.event_time + 60 } ] } }',` +
			` on_timer: 'root = { "emit": [ this.state ], "state": null }' }`,
		answer: func(all []int) (rows [][2]int) {
			there := map[int]bool{}
			for _, id := range all[:len(all)-1] { // no timer fires behind the last row
				there[id] = true
			}
			for _, id := range all {
				if id%2 == 0 && there[id] && there[id+1] {
					rows = append(rows, [2]int{id, id + 1})
				}
			}
			return rows
		},
	},
}

// tight is a memory budget under which everything leaves memory.
const tight = "1KiB"

// Nothing is lost because it was remembered and its delivery failed, nothing passes
// or pairs twice, however often the process is killed.
func TestPairsKilledAtRandom(t *testing.T) {
	for _, p := range pairings {
		for _, place := range []struct{ form, budget string }{{inputHost, ""}, {inputHost, tight}, {processorHost, tight}, {standalone, ""}, {standalone, tight}} {
			t.Run(strings.TrimSpace(p.name+" in "+place.form+" "+place.budget), func(t *testing.T) {
				t.Parallel()
				base := life.Seed(t)
				killed := 0
				for round := uint64(0); killed < kills()/3; round++ {
					shape := orders(base+round, 2500, 1)
					shape.Invalid = 0 // what is no data for a window may be some here
					s := topic(t, place.form, shape, 2*time.Millisecond)
					s.parts, s.op, s.budget, s.refuse = p.parts, p.op, place.budget, 0.2
					killed += s.killAtRandom(t, rand.New(rand.NewPCG(base, round)), kills()/3-killed)
					s.verifyPairs(t, p)
				}
				t.Logf("%d kills", killed)
			})
		}
	}
}

// verifyPairs compares the union of what came out of all lives.
func (s *scenario) verifyPairs(t testing.TB, p pairing) {
	t.Helper()
	var all []int
	for _, e := range s.shape.Events()[0] {
		all = append(all, numberOf(t, e.Payload))
	}
	byKey, got := map[string]string{}, map[[2]int]bool{}
	for _, e := range s.entries(t) {
		require.Empty(t, e.LateBy, "a row is late: %s", e.Payload)
		require.Empty(t, e.Err, "%s", e.Payload)
		require.NotEmpty(t, e.RowKey, "a row passed through: %s", e.Payload)
		if before, seen := byKey[e.RowKey]; seen {
			require.Equal(t, before, string(e.Payload), "one row key, two rows: %s", e.RowKey)
			continue
		}
		byKey[e.RowKey] = string(e.Payload)
		row := pairOf(t, e)
		require.False(t, got[row], "%v came out under two row keys", row)
		got[row] = true
	}
	var missing [][2]int
	for _, row := range p.answer(all) {
		if !got[row] {
			missing = append(missing, row)
		}
		delete(got, row)
	}
	require.Empty(t, missing, "did not come out, seed %d", s.shape.Seed)
	require.Empty(t, got, "should not have come out, seed %d", s.shape.Seed)
}

func pairOf(t testing.TB, e plugins.Entry) [2]int {
	var row struct{ Left, Right json.RawMessage }
	require.NoError(t, json.Unmarshal(e.Payload, &row))
	if row.Left == nil {
		return [2]int{numberOf(t, e.Payload), numberOf(t, e.Payload)}
	}
	return [2]int{numberOf(t, row.Left), numberOf(t, row.Right)}
}

func numberOf(t testing.TB, payload json.RawMessage) int {
	var row struct{ ID *int }
	require.NoError(t, json.Unmarshal(payload, &row), "%s", payload)
	require.NotNil(t, row.ID, "%s", payload)
	return *row.ID
}
