package processors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host"
	"github.com/connect-windowed/connect-windowed/windowing/host/failpoint"
)

// Mistakes that an operator on its own sees only in the messages.
var (
	errNoWatermark = errors.New("the message has passed no watermark: put a watermark processor before this one in the same list")
	errRevised     = errors.New("an operator upstream may emit a row key twice, so that revisions would be counted: use output_mode append without allowed_lateness and early there")
	errEarly       = errors.New("early: rows that come out by the wall clock need timers, which only the windowed input has: put the operator into the processors list of that input, or remove early")
)

// newStandalone makes an operator that stands in an ordinary processors list: a
// chain of its own, which takes its instant from the messages.
func newStandalone(op *operator, res *service.Resources) (service.BatchProcessor, error) {
	if op.alone != nil {
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, op.alone)
	}
	if op.early && !dryRun() { // the processors of an input may be tested
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, errEarly)
	}
	h := &hosted{log: res.Logger(), position: op.position}
	if op.stage.Watermark != nil {
		// Rows pass through a watermark, and to observe a row twice changes nothing: a
		// redelivery is judged like any other batch, and no position is needed.
		h.position = positionConfig{mode: host.None}
	}
	stages := []windowing.Stage{op.stage}
	lead := []compiler{op.compile}
	if op.stage.Operator != nil {
		stages = []windowing.Stage{{Relay: true, Kind: "relay", Binding: relayBinding{}}, op.stage}
		lead = []compiler{func(*expr.Set) (reader, error) { return relayReader{}, nil }, op.compile}
	}
	p, err := newProgram(lead...)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	stages[len(stages)-1].Binding = op.bind(p)
	chain, err := windowing.NewChain(windowing.Config{Stages: stages, Lead: len(lead), Prepare: p.extract, Start: instant(), Limit: failpoint.Part(), Behind: op.stage.Watermark != nil && op.position.mode != host.None, Memory: op.memory})
	if err != nil {
		return nil, err
	}
	h.built = &built{chain: chain, foreign: &foreign{}, lag: op.idle, memory: op.memory}
	r := newRelays(op, res.Logger())
	cfg := host.Config{Edge: edge{pairs: true, texts: &markTexts{}}, Reply: true, Horizon: 10 * time.Minute, Leaving: r.pass}
	if op.stage.Operator != nil {
		cfg.Again = r.again
	}
	if err := h.start(res, op.state, op.name, cfg); err != nil {
		return nil, err
	}
	w := &windowedProcessor{hosted: h, gone: make(chan struct{}), apart: leaveApart}
	switch {
	case op.stage.Operator != nil:
		w.finish = r.hear
	case h.durable:
		r.of.Load().last = &w.last
	}
	return w, nil
}

// leaveApart makes the batches of a step known as such. of is the step that they came
// with, where that has several batches already, or nil.
func leaveApart(batches []service.MessageBatch, of any) {
	s, _ := of.(*step)
	switch {
	case s != nil:
	case len(batches) < 2:
		return
	default:
		s = &step{}
	}
	for n, batch := range batches {
		if n < len(batches)-1 {
			holdBack(batch)
		}
		for _, m := range batch {
			if c := carriedBy(m); c != nil {
				c.step = s
			}
		}
	}
}

// holdBack makes rows of a step that others of it follow in a further batch carry
// (late, late): an operator behind would else close before it has seen the rest.
func holdBack(batch service.MessageBatch) {
	for i, m := range batch {
		old := carriedBy(m)
		if old == nil || old.pair == nil {
			continue
		}
		c, p := *old, *old.pair
		p.close = p.late
		c.pair = &p
		batch[i] = carry(m, &c)
	}
}

// relayReader takes the time of a row from what its message carries.
type relayReader struct{}

func (relayReader) read(s *scratch, i int, row *windowing.Row) error {
	c := carriedBy(s.batch[i])
	switch {
	case c == nil || c.pair == nil:
		return errNoWatermark
	case c.pair.revised != "":
		return fmt.Errorf("%s: %w", c.pair.revised, errRevised)
	}
	row.Time, row.Source = c.row.Time, c.row.Source
	return nil
}

// relayBinding is the binding of a relay, whose rows are always prepared.
type relayBinding struct{ failing }

// Extract implements windowing.Binding. Rows come prepared.
func (relayBinding) Extract([]windowing.Row) {}

// Render implements windowing.Binding. A relay has no results.
func (relayBinding) Render(*windowing.Result) windowing.Message {
	panic("processors: a relay emits no rows of its own")
}

// relays takes the pair from the messages that reach an operator on its own, and
// puts it onto what the operator gives back.
type relays struct {
	op  *operator
	log *service.Logger
	// of is the watermark that the messages come from, for rows that the operator
	// makes. It is written by callers and read by the owner.
	of    atomic.Pointer[origin]
	apart atomic.Bool // whether the log has said that its watermark stands in another list
	// life tells the rows of an operator in memory from those of earlier lives, whose
	// numbers come again; "" where the numbers are durable.
	life string
}

func newRelays(op *operator, log *service.Logger) *relays {
	r := &relays{op: op, log: log}
	if op.state == "" || op.state == memory {
		r.life = " " + strconv.FormatUint(rand.Uint64(), 36)
	}
	r.of.Store(&origin{sources: op.sources, delay: op.delay})
	return r
}

// hear tells the chain what the messages have heard from their watermark. They
// may come from several batches by now: the smallest late keeps every row that
// was in time, the largest close is how far event time has come.
func (r *relays) hear(ctx context.Context, b *host.Batch, messages service.MessageBatch) {
	told := &host.Relayed{Pair: windowing.Pair{Late: watermark.EndOfTime, Close: watermark.Unset}, Now: watermark.Unset}
	for _, m := range messages {
		c := carriedBy(m)
		if c == nil || c.pair == nil {
			continue
		}
		if c.step != nil {
			b.Step = c.step
		}
		told.Late, told.Close, told.Now = min(told.Late, c.pair.late), max(told.Close, c.pair.close), max(told.Now, c.pair.now)
		if c.pair.of != r.of.Load() {
			r.of.Store(c.pair.of)
		}
	}
	if last := r.of.Load().last; last != nil && !last.sameList(ctx) && !r.apart.Swap(true) {
		r.log.Warnf("%s %q: its durable watermark stands in another list of processors and may commit messages that never come here, if the process is killed: their rows would be late when they come again. Put both into one list, or use the windowed input", r.op.kind, r.op.name)
	}
	if told.Late == watermark.EndOfTime {
		told.Late = watermark.Unset
	}
	b.Relayed = told
}

// pass implements host.Config.Leaving: it makes the rows of a step carry what the next operator has to hear.
func (r *relays) pass(rows []windowing.Row, p windowing.Pair, now watermark.Time) {
	for i := range rows {
		row := &rows[i]
		m := row.Message.(*service.Message)
		c := &carried{row: windowing.Row{Time: row.Time, Source: row.Source, Flag: row.Flag},
			pair: &pair{late: p.Late, close: p.Close, now: now, of: r.of.Load()}}
		old := carriedBy(m)
		if old != nil {
			c.at = old.at
		}
		if row.Mark != nil && row.Flag != windowing.Late {
			c.at = r.at(row, c.at)
		}
		if r.op.stage.Revises {
			c.pair.revised = r.op.name
		}
		row.Message = carry(m, c)
	}
}

// at is the position of a row for the next operator, before is the one that it had. The
// number of a row in its chain is stable: a redelivery comes out of the log with the
// number that it had. In memory that holds for one life, and a message that passes is
// better known by a position of its own.
func (r *relays) at(row *windowing.Row, before host.Position) host.Position {
	name := r.op.kind + " " + r.op.name + r.life
	if r.life != "" && row.Entry >= 0 {
		if before.Known {
			return before
		}
		name = passed + name
	}
	return host.Position{Partition: name, Offset: row.Arrival, Known: true}
}

// passed begins the partition of a position that counts only where a message has none of
// its own.
const passed = "passed "

// again implements host.Config.Again. What the row heard when it came out the first time
// counted the whole batch that it came with, of which other messages may still have to
// come again for an operator that has not seen them: it hears no more than what is
// known now.
func (r *relays) again(m windowing.Message, told *host.Relayed) {
	c := carriedBy(m.(*service.Message))
	if c == nil || c.pair == nil || told == nil {
		return
	}
	hold := r.op.stage.Hold
	c.pair.late = min(c.pair.late, told.Late.Add(-hold))
	c.pair.close = min(c.pair.close, told.Close.Add(-hold))
}
