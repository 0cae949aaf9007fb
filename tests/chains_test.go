package tests

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
	"github.com/connect-windowed/connect-windowed/tests/life"
)

// chainRow is a message for a chain of operators on their own.
type chainRow struct {
	P  string `json:"_p"`
	O  int    `json:"_o"`
	ID string `json:"id"`
	K  string `json:"k"`
	TS int    `json:"ts"`
}

// ending is the end of the key of messages that only close what is open.
const ending = " end"

// chainStream makes partitions whose rows are at most five seconds behind, with ids that
// come again within a partition.
func chainStream(r *rand.Rand) [][]chainRow {
	parts := make([][]chainRow, 3)
	for p := range parts {
		at := 100
		for o := range 20 + r.IntN(20) {
			at += r.IntN(6)
			row := chainRow{fmt.Sprint("p", p), o, fmt.Sprint(p, "-", o), fmt.Sprint(r.IntN(3)), at - r.IntN(6)}
			if o > 3 && r.IntN(5) == 0 {
				row.ID = parts[p][o-1-r.IntN(3)].ID
			}
			parts[p] = append(parts[p], row)
		}
		for i := range 6 {
			n := len(parts[p])
			at += 100_000
			parts[p] = append(parts[p], chainRow{fmt.Sprint("p", p), n, fmt.Sprint(p, "-", n), fmt.Sprint(i%2, ending), at})
		}
	}
	return parts
}

// cutBatch takes the next batch off the partitions, each in its order.
func cutBatch(r *rand.Rand, parts [][]chainRow) (batch []string) {
	for n := 1 + r.IntN(12); n > 0 && slices.ContainsFunc(parts, func(rows []chainRow) bool { return len(rows) > 0 }); {
		p := r.IntN(len(parts))
		take := min(n, 1+r.IntN(3), len(parts[p]))
		for _, row := range parts[p][:take] {
			text, _ := json.Marshal(row)
			batch = append(batch, string(text))
		}
		parts[p] = parts[p][take:]
		n -= take
	}
	return batch
}

// chainCase is a chain behind a watermark, and what the last window counts of a message.
type chainCase struct {
	operators []any
	want      func(row chainRow, again bool) []string
	sources   fields // of the watermark, nil: one
}

// inWindow is a key with its window.
func inWindow(k string, start int) string { return fmt.Sprint(k, " ", start) }

func counts(row chainRow, _ bool) []string { return []string{inWindow(row.K, row.TS-row.TS%10)} }

// lastWindow ends every chain.
func lastWindow(n string) any {
	return fields{"tumbling_window": fields{"size": "10s", "group_by": fields{"k": "this.k | this.left.k"}, "aggregates": fields{"n": n}}}
}

var (
	firstWindow = fields{"tumbling_window": fields{"name": "first", "size": "5s", "group_by": fields{"k": "this.k"}, "aggregates": fields{"n": "count()"}}}
	chainCases  = map[string]chainCase{
		"window": {[]any{lastWindow("count()")}, counts, nil},
		"outer join": {[]any{fields{"interval_join": fields{"type": "left", "lower": "-3s", "upper": "3s",
			"left":  fields{"source": "left", "key": "this._p + this._o.string()"},
			"right": fields{"source": "right", "key": "this._p + this._o.string()"}}}, lastWindow("count()")},
			func(row chainRow, _ bool) []string {
				if row.K == "1" {
					return nil
				}
				return counts(row, false)
			}, fields{"left": fields{"when": `!this.k.has_prefix("1")`}, "right": fields{"when": `this.k.has_prefix("1")`}}},
		"dedupe": {[]any{fields{"watermark_dedupe": fields{"key": "this.id", "within": "10000s"}}, lastWindow("count()")},
			func(row chainRow, again bool) []string {
				if again {
					return nil
				}
				return counts(row, again)
			}, nil},
		"window behind window":     {[]any{firstWindow, lastWindow("sum(this.n)")}, counts, nil},
		"window behind watermarks": {[]any{firstWindow, fields{"watermark": fields{"name": "second", "delay": "0s"}}, lastWindow("sum(this.n)")}, counts, nil},
		"timers": {[]any{fields{"keyed_state": fields{"key": `this._p + "-" + this._o.string()`,
			"on_event": `root.emit = [ {"k": this.event.k, "n": 1} ]
root.timers = [ {"name": "at", "at": this.event_time + 3} ]
root.state = {"k": this.event.k}`,
			"on_timer": `root.emit = [ {"k": "timer of " + this.state.k, "n": 1} ]`}}, lastWindow("sum(this.n)")},
			// When an overdue timer fires, its time is W.
			func(row chainRow, _ bool) []string { return append(counts(row, false), "timer of "+row.K) }, nil},
	}
)

// list gives the processors, each with a state of its own.
func (c chainCase) list() []any {
	marks := fields{"event_time": "this.ts", "delay": "5s", "partition": "this._p", "partitions": []string{"p0", "p1", "p2"}, "state": "0", "position": byPosition}
	if c.sources != nil {
		marks["sources"] = c.sources
	}
	list := []any{fields{"watermark": marks}}
	for i, op := range c.operators {
		for kind, f := range op.(fields) {
			f := maps.Clone(f.(fields))
			f["state"], f["position"] = fmt.Sprint(i+1), byPosition
			list = append(list, fields{kind: f})
		}
	}
	return list
}

// expected is what the last window counts of whole partitions.
func (c chainCase) expected(parts [][]chainRow) map[string]int {
	want, seen := map[string]int{}, map[string]bool{}
	for _, rows := range parts {
		for _, row := range rows {
			if !strings.HasSuffix(row.K, ending) {
				for _, key := range c.want(row, seen[row.ID]) {
					want[key]++
				}
			}
			seen[row.ID] = true
		}
	}
	return want
}

// collect adds the rows of a run to those by row id.
func collect(t *testing.T, p *drive.Pipe, rows map[string]string) {
	t.Helper()
	for _, m := range p.Sink.Messages() {
		if id := m.Get(drive.MetaRowID); id != "" {
			if old, ok := rows[id]; ok {
				require.Equal(t, old, string(m.Payload), id)
			}
			rows[id] = string(m.Payload)
		}
	}
}

// countedRows sums up rows by key and window.
func countedRows(t *testing.T, rows map[string]string) map[string]int {
	t.Helper()
	got := map[string]int{}
	for _, text := range rows {
		var row struct {
			K     string
			N     int
			Start time.Time `json:"window_start"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &row))
		switch {
		case strings.HasSuffix(row.K, ending):
		case strings.HasPrefix(row.K, "timer"):
			got[row.K] += row.N
		default:
			got[inWindow(row.K, int(row.Start.Unix()))] += row.N
		}
	}
	return got
}

// knownOfTheStep is a seed with which a process dies in a step whose batch begins with
// messages that were applied in a life before: these come again first.
const knownOfTheStep = 397427252668

// Operators in a row, each with its own state, die between the commit of one and the
// commit of the next, or behind the last. What was under way comes again in other batches
// and between newer rows of other partitions. Nothing is lost, and nothing counts twice.
func TestChainsAfterCrashes(t *testing.T) {
	for name, c := range chainCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh := 1
			if os.Getenv("SOAK") != "" {
				fresh = 20
			}
			for _, run := range []struct {
				seed    uint64
				streams int
			}{{knownOfTheStep, 5}, {life.Seed(t), fresh}} {
				r := rand.New(rand.NewPCG(run.seed, 0))
				for range run.streams {
					parts := chainStream(r)
					rows := map[string]string{}
					history := c.crashing(t, r, slices.Clone(parts), rows)
					require.Equal(t, c.expected(parts), countedRows(t, rows), "seed %d\n%s", run.seed, strings.Join(history, "\n"))
				}
			}
		})
	}
}

// crashing plays a stream with crashes, and gives what it did.
func (c chainCase) crashing(t *testing.T, r *rand.Rand, parts [][]chainRow, rows map[string]string) (history []string) {
	t.Helper()
	dir, list := t.TempDir(), c.list()
	files := map[string]string{}
	for i := range list {
		files[fmt.Sprint(i)] = filepath.Join(dir, fmt.Sprint("first ", i))
	}
	for lives := 1; ; lives++ {
		p := listed(t, files, list...)
		next := map[string]string{}
		save := func(from, to int) {
			for i := from; i < to; i++ {
				name := fmt.Sprint(i)
				next[name] = filepath.Join(dir, fmt.Sprint(lives, " ", i))
				require.NoError(t, drive.Snapshot(files[name], next[name]))
			}
		}
		for n := 1 + r.IntN(8); ; n-- {
			before := slices.Clone(parts)
			batch := cutBatch(r, parts)
			if len(batch) == 0 {
				require.NoError(t, p.Stop())
				collect(t, p, rows)
				return history
			}
			if n > 0 {
				history = append(history, fmt.Sprint(batch))
				offer(t, p, batch...)
				continue
			}
			dies := r.IntN(len(list)) + 1
			history = append(history, fmt.Sprint("dies in front of operator ", dies, ": ", batch))
			save(dies, len(list))
			collect(t, p, rows)
			offer(t, p, batch...)
			save(0, dies)
			parts = before
			break
		}
		require.NoError(t, p.Stop())
		files = next
	}
}
