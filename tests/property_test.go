package tests

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
	"github.com/connect-windowed/connect-windowed/tests/machine"
	"github.com/connect-windowed/connect-windowed/tests/oracle"
	"github.com/connect-windowed/connect-windowed/tests/random"
)

// seeds gives the seeds of a random test: fresh ones, or the one in SEED. Their
// number grows with SOAK.
func seeds(t *testing.T, n int) []uint64 {
	if text := os.Getenv("SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		return []uint64{seed}
	}
	if os.Getenv("SOAK") != "" {
		n *= 50
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = rand.Uint64N(1 << 40)
	}
	return list
}

// query is a random stream and what is asked of it.
type query struct {
	oracle.Query
	shape   random.Shape
	sources bool // partitions belong to sources with delays of their own
}

func randomQuery(seed uint64, late float64) query {
	rnd := rand.New(rand.NewPCG(seed, 100))
	pick := func(options ...time.Duration) time.Duration { return options[rnd.IntN(len(options))] }
	q := query{sources: rnd.IntN(4) == 0}
	size := pick(time.Millisecond, 700*time.Millisecond, 10*time.Second, 7*time.Minute, time.Hour, 25*time.Hour)
	delay := pick(0, 1, size/3, size, 5*size)
	offset := pick(0, 0, size/7, -size/3, 3*size+1)
	q.shape = random.Shape{Seed: seed, Rows: 60 + rnd.IntN(200), Partitions: 1 + rnd.IntN(4), Groups: 1 + rnd.IntN(14),
		Delay: delay, Window: size, Step: size/time.Duration(1+rnd.IntN(20)) + 1, Late: late, Invalid: 0.08 * float64(rnd.IntN(2)),
		Floats: rnd.IntN(2) == 0, Origin: int64(pick(0, -size, -20*365*24*time.Hour, 50*365*24*time.Hour))}
	q.Query = oracle.Query{Size: int64(size), Offset: int64(offset), Max: late > 0 && !q.sources && rnd.IntN(4) == 0}
	if rnd.IntN(2) == 0 {
		q.Slide = int64(size) / int64(1+rnd.IntN(7))
	}
	var names []string
	for p := range q.shape.Partitions {
		names = append(names, fmt.Sprintf("p%d", p))
	}
	if q.sources {
		for range names {
			q.Sources = append(q.Sources, oracle.Source{Delay: int64(delay)})
		}
		return q
	}
	q.Sources = []oracle.Source{{Delay: int64(delay), Partitions: names}}
	return q
}

// config writes the query as processors.
func (q query) config() []json.RawMessage {
	wm := map[string]any{"unit": "ms"}
	if q.sources {
		sources := map[string]any{}
		for i, s := range q.Sources {
			sources[fmt.Sprintf("s%d", i)] = map[string]any{"when": fmt.Sprintf(`this.p == "p%d"`, i), "event_time": "this.ts", "delay": time.Duration(s.Delay).String()}
		}
		wm["sources"] = sources
	} else {
		wm["event_time"], wm["partition"], wm["partitions"] = "this.ts", "this.p", q.Sources[0].Partitions
		wm["delay"] = time.Duration(q.Sources[0].Delay).String()
		if q.Max {
			wm["policy"] = "max"
		}
	}
	window := map[string]any{"size": time.Duration(q.Size).String(), "offset": time.Duration(q.Offset).String(),
		"group_by":   map[string]any{"k": "this.k"},
		"aggregates": map[string]any{"n": "count()", "values": "count(this.v)", "sum": "sum(this.v)", "min": "min(this.v)", "max": "max(this.v)", "avg": "avg(this.v)"}}
	kind := "tumbling_window"
	if q.Slide > 0 {
		kind, window["slide"] = "sliding_window", time.Duration(q.Slide).String()
	}
	var list []json.RawMessage
	for _, p := range []map[string]any{{"watermark": wm}, {kind: window}} {
		data, err := json.Marshal(p)
		if err != nil {
			panic(err)
		}
		list = append(list, data)
	}
	return list
}

// run gives the stream in these batches with the oracle's answer.
func (q query) run(name string, batches [][]random.Event) machine.Run {
	rows := random.Rows(batches)
	if q.sources {
		for _, batch := range rows {
			for i := range batch {
				batch[i].Source, _ = strconv.Atoi(batch[i].Partition[1:])
			}
		}
	}
	answer := q.Answer(rows)
	errors, late := 0, len(answer.Late)
	run := machine.Run{Name: name, Unit: "ns", Config: q.config(), Clock: machine.DefaultClock, Exact: true, Times: true,
		Tol: 1e-12, Loose: "avg", Errors: &errors, Late: &late, Watermarks: answer.Watermarks}
	isLate := map[int]bool{}
	for _, id := range answer.Late {
		isLate[id] = true
	}
	for _, batch := range batches {
		step := machine.Step{IsBatch: true}
		var lates []int
		for _, e := range batch {
			step.Batch = append(step.Batch, e.Payload)
			if e.Row.Invalid {
				errors++
			}
			if isLate[e.Row.ID] {
				lates = append(lates, e.Row.ID)
			}
		}
		run.Steps, run.LateRows = append(run.Steps, step), append(run.LateRows, lates)
	}
	for _, r := range answer.Results {
		run.Expected = append(run.Expected, drive.Expected(r))
	}
	return run
}

// The same rows in the same batches give the rows of the oracle, whatever the
// form, and however often the process is restarted or crashes in between.
func TestSameCutSameRows(t *testing.T) {
	for _, seed := range seeds(t, 24) {
		t.Run(fmt.Sprintf("SEED=%d", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 101))
			q := randomQuery(seed, 0.1)
			run := q.run("", random.Cut(seed, q.shape.Events(), 1+rnd.IntN(60)))
			form := drive.Forms()[rnd.IntN(len(drive.Forms()))]
			play := drive.Play{Run: run, Form: form, Encoding: drive.Encodings()[rnd.IntN(3)], Durable: rnd.IntN(3) > 0, Tight: rnd.IntN(2) == 0}
			if rnd.IntN(2) == 0 {
				play.Late = "pass"
			}
			if play.Durable {
				play.Run = interrupted(run, rnd, len(run.Steps))
			}
			t.Log(play.Form.Name, play.Name())
			out := play.Start(t)
			checkPlay(t, play, out)
			checkGolden(t, play, out)
		})
	}
}

// before is the number of batches after which a run may be interrupted: all, but
// for operators on their own those without the last row of a partition. A crash
// leaves it open whether the source sends the last batch again, so the watermark
// waits for a row of each of its partitions.
func before(run machine.Run, events [][]random.Event, form drive.Form) int {
	if !form.Alone {
		return len(run.Steps)
	}
	last := map[string]bool{}
	for _, part := range events {
		last[string(part[len(part)-1].Payload)] = true
	}
	for n, s := range run.Steps {
		for _, raw := range s.Batch {
			if last[string(raw)] {
				return n
			}
		}
	}
	return len(run.Steps)
}

// interrupted puts restarts and crashes between the first so many batches.
func interrupted(run machine.Run, rnd *rand.Rand, batches int) machine.Run {
	var steps []machine.Step
	for i, s := range run.Steps {
		steps = append(steps, s)
		if i >= batches {
			continue
		}
		switch rnd.IntN(12) {
		case 0:
			steps = append(steps, machine.Step{Restart: true})
		case 1:
			steps = append(steps, machine.Step{Kill: true})
		}
	}
	run.Steps = steps
	return run
}

// Where no row is more than the delay behind its declared partition, nothing
// depends on how the partitions are interleaved and the stream is cut.
func TestAnyCutSameFinals(t *testing.T) {
	for _, seed := range seeds(t, 8) {
		t.Run(fmt.Sprintf("SEED=%d", seed), func(t *testing.T) {
			q := randomQuery(seed, 0)
			events := q.shape.Events()
			want := q.run("", [][]random.Event{flat(events)})
			for n := range 3 {
				run := q.run("", random.Cut(seed+uint64(n), events, 1+n*n*20))
				run.Expected, run.Times, run.Watermarks = want.Expected, false, nil
				require.Zero(t, *run.Late)
				play := drive.Play{Run: run, Form: drive.Forms()[(int(seed)+n)%len(drive.Forms())], Encoding: drive.Encodings()[n], Durable: n < 2, Tight: n == 1}
				if play.Durable {
					play.Run = interrupted(run, rand.New(rand.NewPCG(seed, uint64(n))), before(run, events, play.Form))
					play.Run.Position = json.RawMessage(`{"partition": "this.p", "offset": "this.id"}`)
				}
				t.Log(play.Form.Name, play.Name())
				checkPlay(t, play, play.Start(t))
			}
		})
	}
}

func flat(parts [][]random.Event) (all []random.Event) {
	for _, events := range parts {
		all = append(all, events...)
	}
	return all
}
