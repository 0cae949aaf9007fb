package host

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// recorder is an operator that notes how it is called.
type recorder struct{ calls []string }

func (r *recorder) Process(in windowing.Instant, rows []windowing.Row, out *windowing.Output) {
	r.calls = append(r.calls, fmt.Sprintf("%d rows (%s, %s)", len(rows), seconds(in.Late), seconds(in.Close)))
	for _, row := range rows {
		out.Pass(row)
	}
}

func (r *recorder) Advance(in windowing.Instant, _ int, _ *windowing.Output) bool {
	r.calls = append(r.calls, fmt.Sprintf("advance (%s, %s)", seconds(in.Late), seconds(in.Close)))
	return true
}

func (r *recorder) Save(kv.Writer)       {}
func (r *recorder) Load(kv.Reader) error { return nil }

// seconds is a time for reading, rounded up: a hold of 1 ns does not show.
func seconds(t watermark.Time) string {
	if t == watermark.Unset || t == watermark.EndOfTime {
		return t.String()
	}
	return fmt.Sprint(int64((t + second - 1) / second))
}

func (r *recorder) take() []string {
	calls := r.calls
	r.calls = nil
	return calls
}

// chainRig plays steps on a chain without a host.
type chainRig struct {
	*windowing.Chain
	t      *testing.T
	stages func() []windowing.Stage
	store  kv.Store
	limit  int
	mono   time.Duration
}

func newChainRig(t *testing.T, limit int, stages func() []windowing.Stage) *chainRig {
	r := &chainRig{t: t, stages: stages, store: kv.NewMemory(), limit: limit}
	r.restart()
	return r
}

func (r *chainRig) clock() watermark.Clock {
	return watermark.Clock{Wall: watermark.Time(r.mono), Mono: r.mono}
}

func (r *chainRig) commit() {
	var b kv.Batch
	r.Save(&b)
	require.NoError(r.t, r.store.Commit(&b))
}

func (r *chainRig) restart() {
	var err error
	r.Chain, err = windowing.NewChain(windowing.Config{Stages: r.stages(), Limit: r.limit, Start: r.clock()})
	require.NoError(r.t, err)
	_, err = r.Load(r.store)
	require.NoError(r.t, err)
}

// step plays a batch to its end; between says what happens after each part.
func (r *chainRig) step(between func(), notes ...*note) (rows []windowing.Row) {
	r.Begin(events(0, notes...).Rows, r.clock())
	return r.run(between)
}

func (r *chainRig) run(between func()) (rows []windowing.Row) {
	for {
		signal := r.Run()
		rows = append(rows, r.Take()...)
		if r.commit(); signal == windowing.Done {
			return rows
		}
		require.Equal(r.t, windowing.More, signal)
		if between != nil {
			between()
		}
	}
}

func firstLetter(n *note) string { return n.key[:1] }

// A close that is too large for one part stays one step: the stages behind see
// each part with (late, late) and advance once, with the last one.
func TestPartsAreOneStep(t *testing.T) {
	rec := &recorder{}
	r := newChainRig(t, 2, func() []windowing.Stage {
		return append(sums(), windowing.Stage{Name: "rec", Kind: "rec", Operator: rec, Binding: timeBinding{}})
	})
	for _, restart := range []func(){nil, r.restart} {
		r.restart()
		base := int64(0)
		if restart != nil {
			base = 100
		}
		r.step(nil, at(base+1, "a"), at(base+2, "b"), at(base+3, "c"), at(base+4, "d"), at(base+5, "e"))
		rec.take()
		rows := r.step(restart, at(base+15, "a"))
		late, done := fmt.Sprint(base+5), fmt.Sprint(base+15)
		require.Equal(t, []string{
			"2 rows (" + late + ", " + late + ")", "2 rows (" + late + ", " + late + ")",
			"1 rows (" + late + ", " + late + ")", "advance (" + late + ", " + done + ")",
		}, rec.take())
		require.Len(t, rows, 5)
	}
}

// twoDomains is a chain with a watermark of its own behind the first window.
func twoDomains() []windowing.Stage {
	second := watermarkStage(0)
	second.Name = "wm2"
	second.Binding = letterBinding{}
	return append(sums(), second, windowStage("w2", 10*time.Second, firstLetter))
}

// letterBinding makes the first letter of the key the partition.
type letterBinding struct{ timeBinding }

func (b letterBinding) Extract(rows []windowing.Row) {
	for i := range rows {
		if row := &rows[i]; row.Flag == windowing.Data {
			row.Time, row.Source, row.Partition = row.Message.(*note).at, 0, firstLetter(row.Message.(*note))
		}
	}
}

// A second watermark takes all parts of a close as one batch, also over a restart
// in the middle of it.
func TestPartsMoveASecondWatermarkOnce(t *testing.T) {
	var got [][]string
	for _, restart := range []bool{false, true} {
		r := newChainRig(t, 1, twoDomains)
		var between func()
		if restart {
			between = r.restart
		}
		var out []string
		for step := range int64(5) {
			base := 10 * step
			notes := []*note{at(base+1, "b1"), at(base+2, "b2"), at(base+3, "c1")}
			if step%3 == 0 { // a partition that speaks now and then, and comes first in a close
				notes = append(notes, at(base+4, "a1"))
			}
			for _, row := range r.step(between, notes...) {
				n := row.Message.(*note)
				out = append(out, fmt.Sprintf("step %d: %s=%d until %s", step, n.key, n.n, seconds(n.at)))
			}
			out = append(out, fmt.Sprintf("step %d: W %s", step, seconds(r.Watermark(2))))
		}
		got = append(got, out)
	}
	require.Equal(t, got[0], got[1])
	require.Contains(t, got[0], "step 3: W 10", "held back by the partition")
	require.Contains(t, got[0], "step 4: W 40")
	require.Contains(t, got[0], "step 4: b=2 until 30")
}

// Rows that a tick lets out of one domain move the watermark of the next one in
// the same step.
func TestTickMovesASecondWatermark(t *testing.T) {
	for _, restart := range []bool{false, true} {
		r := newChainRig(t, 0, func() []windowing.Stage {
			stages := twoDomains()
			stages[0].Watermark.Config.IdleAdvance = true
			return stages
		})
		r.mono = 100 * time.Second
		r.step(nil, at(1, "a"))
		r.mono += 15 * time.Second
		r.BeginTick(r.clock())
		require.Empty(t, r.run(nil))
		if restart {
			r.restart()
		}
		require.Equal(t, "16", seconds(r.Watermark(0)))
		require.Equal(t, "10", seconds(r.Watermark(2)), "restart: %v", restart)
	}
}
