package windowing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// textCodec keeps messages that are texts.
type textCodec struct{}

func (textCodec) Encode(b []byte, m Message) []byte { return append(b, m.(string)...) }

func (textCodec) Decode(data []byte) (Message, error) { return string(data), nil }

// operatorStep is one step of a stream for an operator that passes messages on.
type operatorStep struct {
	in   Instant
	rows []Row
}

// operatorChaos runs a stream with restarts, crashes and parts by chance.
type operatorChaos struct {
	t     testing.TB
	r     *rand.Rand
	fresh func() Operator
	bound int64 // bytes of state in memory, 0: all
	hold  time.Duration
	lines func(out *Output) []string
	exact bool // the order of the lines counts
	store kv.Store
	op    Operator
}

// run gives the lines of each step, and of one more at the end of time, each step
// in the order of its texts unless that of the operator counts.
func (c *operatorChaos) run(steps []operatorStep) (output [][]string) {
	c.store = kv.NewMemory()
	c.restart()
	w := watermark.Unset
	for _, s := range steps {
		output = append(output, c.step(s.in, s.rows))
		w = s.in.Close
	}
	output = append(output, c.step(Instant{Late: w, Close: watermark.EndOfTime}, nil))
	saveTo(c.t, c.op, c.store)
	requireProgressOnly(c.t, c.store)
	windows, groups := c.op.(interface{ Sizes() (int, int) }).Sizes()
	require.Zero(c.t, windows)
	require.Zero(c.t, groups)
	return output
}

func (c *operatorChaos) step(in Instant, rows []Row) (text []string) {
	for first := true; ; first = false {
		limit := 1 + c.r.IntN(3)
		once := func() ([]string, bool) {
			out := &Output{}
			if first && len(rows) > 0 {
				c.op.Process(Instant{Late: in.Late, Close: in.Late}, slices.Clone(rows), out)
			}
			done := c.op.Advance(in, limit, out)
			require.NoError(c.t, out.err)
			for _, it := range out.items {
				if it.result != nil {
					require.GreaterOrEqual(c.t, it.result.Time, in.Late.Add(-c.hold), "older than the late that the stage passes on")
				}
			}
			return c.lines(out), done
		}
		if c.r.IntN(3) == 0 { // what was not saved is lost and done again
			c.save()
			lost, _ := once()
			c.restart()
			again, done := once()
			require.Equal(c.t, lost, again)
			text = append(text, again...)
			if done {
				break
			}
			continue
		}
		part, done := once()
		text = append(text, part...)
		if c.r.IntN(2) == 0 {
			c.save()
			if c.r.IntN(2) == 0 {
				c.restart()
			}
		}
		if done {
			break
		}
	}
	if !c.exact {
		slices.Sort(text)
	}
	return text
}

func (c *operatorChaos) restart() {
	c.op = c.fresh()
	if op, is := c.op.(Bounded); is && c.bound > 0 {
		op.Bound(c.bound, c.store)
	}
	require.NoError(c.t, c.op.Load(c.store))
}

// save saves the operator, and tells it mostly.
func (c *operatorChaos) save() {
	saveTo(c.t, c.op, c.store)
	if op, is := c.op.(Bounded); is && c.bound > 0 && c.r.IntN(4) > 0 {
		op.Committed()
	}
}

// randomSteps makes batches of rows around a time that goes on, with a watermark
// that is behind it by chance. Messages are the numbers of the rows.
func randomSteps(r *rand.Rand, fill func(row *Row)) (steps []operatorStep) {
	now, w, number := watermark.Time(r.IntN(100)-50), watermark.Unset, int64(0)
	spread, delay := 1+r.IntN(60), watermark.Time(r.IntN(40))
	for range 1 + r.IntN(25) {
		var rows []Row
		for range r.IntN(8) {
			number++
			row := Row{Time: now - watermark.Time(r.IntN(spread)), Arrival: number, Message: fmt.Sprint(number)}
			fill(&row)
			rows = append(rows, row)
		}
		in := Instant{Late: w, Close: w}
		if len(rows) > 0 && r.IntN(4) > 0 {
			in.Close = max(w, now-delay)
		}
		steps = append(steps, operatorStep{in: in, rows: rows})
		w = in.Close
		now += watermark.Time(r.IntN(30))
	}
	return steps
}

// randomKey is null now and then.
func randomKey(r *rand.Rand, keys int) []byte {
	if r.IntN(10) == 0 {
		return agg.Null().AppendKey(nil)
	}
	return agg.Int(int64(r.IntN(keys))).AppendKey(nil)
}
