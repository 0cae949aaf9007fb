package processors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/processors/internal/lint"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host/failpoint"
)

// fieldProcessors is the list of a host.
const fieldProcessors = "processors"

// building is what is under construction. A child is not told its parent, so the
// operators and hosts that are constructed while a host builds its children
// report to the nursery. Constructors on other goroutines, of other streams, are
// none of its business.
//
// buildingMutex protects building for as long as one host constructs something.
var (
	buildingMutex sync.Mutex
	building      atomic.Pointer[nursery]
)

// nursery collects what is constructed on one goroutine.
type nursery struct {
	goroutine string
	input     bool   // the child input of a host: operators in its processors stand on their own
	alone     string // the kind of that input where it has no processors
	scanner   string // the kind of its scanner where that is its own
	direct    bool   // an operator that a host calls directly; elsewhere they are refused
	operators []*operator
	hosts     int
	moves     []*PartitionMoves // of inputs inside of input
}

// nurseryHere gives the nursery of the goroutine that calls, nil where none is
// constructing.
func nurseryHere() *nursery {
	n := building.Load()
	if n == nil || n.goroutine != goroutine() {
		return nil
	}
	return n
}

// goroutine names the goroutine that calls. Benthos hands a constructor nothing
// else by which it could tell whose child it makes.
func goroutine() string {
	var buf [64]byte
	head := buf[:runtime.Stack(buf[:], false)] // "goroutine 12 [running]:…"
	name, _, _ := bytes.Cut(head, []byte(" ["))
	return string(name)
}

// observe runs a construction while what it constructs reports to n.
func observe(n *nursery, construct func() error) (*nursery, error) {
	if nurseryHere() != nil {
		return nil, errNested // and the mutex is this goroutine's already
	}
	buildingMutex.Lock()
	defer buildingMutex.Unlock()
	n.goroutine = goroutine()
	building.Store(n)
	defer building.Store(nil)
	return n, construct()
}

// hostInside reports a host under construction, and says whether it stands inside
// of another one.
func hostInside() bool {
	n := nurseryHere()
	if n != nil {
		n.hosts++
	}
	return n != nil
}

// operatorInside reports an operator under construction. It gives the processor
// that stands in for an operator of a host, and an error for one that is nested
// deeper; inside is false for operators that stand on their own.
func operatorInside(op *operator) (p service.BatchProcessor, inside bool, err error) {
	n := nurseryHere()
	if n == nil || n.input {
		return nil, false, nil
	}
	n.operators = append(n.operators, op)
	if !n.direct {
		return nil, true, errNested
	}
	return hostedProcessor{}, true, nil
}

// buildInput constructs the child input of a host.
func buildInput(conf *service.ParsedConfig) (child *service.OwnedInput, moves []*PartitionMoves, err error) {
	raw, err := conf.FieldAny(fieldInput)
	if err != nil {
		return nil, nil, err
	}
	n, err := observe(&nursery{input: true, alone: standsAlone(raw), scanner: scannerAlone(raw)}, func() (err error) {
		child, err = conf.FieldInput(fieldInput)
		return err
	})
	if n != nil && n.hosts > 0 {
		if child != nil {
			closeChild(child)
		}
		return nil, nil, fmt.Errorf("%s: a windowed host stands inside of another one: what the inner one sends again could not be recognised; put the operators of both into one processors list", fieldInput)
	}
	return child, n.moved(), err
}

// built is a chain with what its host needs beside it.
type built struct {
	chain     *windowing.Chain
	operators []*operator
	foreign   *foreign
	lag       time.Duration
	memory    int64 // bytes of state in memory, 0: no limit
	timers    bool  // of the input
	bare      bool  // nothing looks at the metadata of what comes in before it leaves
}

// sums says that only windows, which keep sums of messages, keep anything.
func (b *built) sums() bool {
	for _, op := range b.operators {
		if op.stage.Operator != nil && !summing[op.kind] {
			return false
		}
	}
	return true
}

var summing = map[string]bool{kindTumbling: true, kindSliding: true, kindCumulative: true, kindSession: true}

// blind says that nothing in the chain looks at the metadata of what comes in: all
// rows of it end in a window, or pass untouched, and expressions see documents only.
func (b *built) blind() bool {
	if !b.sums() || len(b.operators) < len(b.foreign.processors) {
		return false
	}
	set := expr.NewSet()
	for _, op := range b.operators {
		look := op.compile
		if op.looks != nil {
			look = op.looks
		}
		if _, err := look(set); err != nil {
			return false // it is said elsewhere
		}
	}
	return set.OnlyDocuments()
}

func newBuilt(conf *service.ParsedConfig, memory int64) *built {
	return &built{foreign: &foreign{}, memory: memory, timers: conf.Contains(fieldOnEnd)} // a field of the input only
}

// close releases the processors between the operators.
func (b *built) close(ctx context.Context) {
	for _, p := range b.foreign.processors {
		if p != nil {
			_ = p.Close(ctx)
		}
	}
}

// buildChain makes the chain of a host from its processors list, with a bound on the
// bytes of its state in memory, 0: none.
func buildChain(conf *service.ParsedConfig, res *service.Resources, memory int64) (*built, error) {
	raw, err := conf.FieldAny(fieldProcessors)
	if err != nil {
		return nil, err
	}
	list, _ := plain(raw).([]any)
	if len(list) == 0 {
		return nil, errNoProcessors
	}
	b := newBuilt(conf, memory)
	var stages []windowing.Stage
	for i := range list {
		st, err := b.element(conf, res, i, list[i])
		if err != nil {
			b.close(context.Background())
			return nil, err
		}
		stages = append(stages, st)
	}
	if err := b.link(stages); err != nil {
		b.close(context.Background())
		return nil, err
	}
	return b, nil
}

var errNoProcessors = errors.New("processors: the list is empty: put a watermark and an operator into it")

// element constructs one element of the list, an operator or a foreign processor.
func (b *built) element(conf *service.ParsedConfig, res *service.Resources, i int, raw any) (st windowing.Stage, err error) {
	kind := kindOf(raw)
	var owned *service.OwnedProcessor
	n, err := observe(&nursery{direct: kind != ""}, func() (err error) {
		if owned, err = conf.FieldProcessor(fieldProcessors, strconv.Itoa(i)); err == nil {
			touch(res, raw)
		}
		return err
	})
	if kind != "" && err == nil {
		op := n.operators[0]
		if err := b.admit(op); err != nil {
			return st, err
		}
		b.operators = append(b.operators, op)
		b.foreign.add(nil, b.timed())
		return op.stage, nil
	}
	if owned != nil {
		b.foreign.add(owned, b.timed())
	}
	switch {
	case n == nil:
		return st, err
	case n.hosts > 0:
		return st, nested(nameWindowed, i)
	case kind == "" && len(n.operators) > 0:
		return st, nested(n.operators[0].kind, i)
	case err != nil:
		if said := lint.Mistyped(err); said != nil {
			err = said
		}
		return st, fmt.Errorf("%s: %d: %w", fieldProcessors, i, err)
	}
	return windowing.Stage{Foreign: true}, nil
}

func nested(kind string, i int) error {
	if kind == nameWindowed {
		return fmt.Errorf("%s: %s is nested in another host at index %d: put its operators directly into the list of the outer one, or %s behind the outer host into pipeline.processors", fieldProcessors, kind, i, kind)
	}
	return fmt.Errorf("%s: %s is nested in another processor at index %d, where it would see only a part of the rows: put it directly into the list and let others stand before and behind it", fieldProcessors, kind, i)
}

// touch has the processor resources constructed that an element names: they are
// lazy, and would keep an operator hidden until the first message.
func touch(res *service.Resources, raw any) {
	for _, label := range search(raw, func(m map[string]any) string { s, _ := m["resource"].(string); return s }) {
		_ = res.AccessProcessor(context.Background(), label, func(*service.ResourceProcessor) {})
	}
}

// timed says that a watermark stands before what is added next.
func (b *built) timed() bool { return b.watermark() != nil }

// admit takes an operator into the chain or says why it cannot stand there.
func (b *built) admit(op *operator) error {
	switch {
	case op.state != "":
		return fmt.Errorf("%s %q: state belongs to the host here: set it there and remove it from the operator", op.kind, op.name)
	case op.position.explicit:
		return fmt.Errorf("%s %q: position belongs to the host here: set it there and remove it from the operator", op.kind, op.name)
	case op.memory > 0:
		return fmt.Errorf("%s %q: %s belongs to the host here: set it there and remove it from the operator", op.kind, op.name, fieldMemoryBudget)
	case op.early && !b.timers:
		return fmt.Errorf("%s %q: %w", op.kind, op.name, errEarly)
	case op.retimed && !b.timed():
		return fmt.Errorf("%s %q: event_time is missing: only a second watermark in a chain takes the time that the row carries", op.kind, op.name)
	}
	b.lag = max(b.lag, op.idle)
	if w := b.watermark(); w != nil && op.behind != nil {
		if err := op.behind(w); err != nil {
			return fmt.Errorf("%s %q: %w", op.kind, op.name, err)
		}
	}
	return nil
}

// watermark is the last watermark in the chain so far.
func (b *built) watermark() *operator {
	for _, op := range slices.Backward(b.operators) {
		if op.stage.Watermark != nil {
			return op
		}
	}
	return nil
}

func (f *foreign) add(p *service.OwnedProcessor, timed bool) {
	f.processors = append(f.processors, p)
	f.timed = append(f.timed, timed)
}

// link compiles the expressions and makes the chain. The leading operators up to
// the first stateful one see the same messages: their expressions are evaluated
// together, ahead of the step.
func (b *built) link(stages []windowing.Stage) error {
	var lead []compiler
	leading, next := true, 0
	for i := range stages {
		if stages[i].Foreign {
			leading = false
			continue
		}
		op := b.operators[next]
		next++
		p, err := newProgram(op.compile)
		if err != nil {
			return fmt.Errorf("%s %q: %w", op.kind, op.name, err)
		}
		stages[i].Binding = op.bind(p)
		if leading {
			lead = append(lead, op.compile)
			leading = stages[i].Operator == nil
		}
	}
	if last, ok := stages[len(stages)-1].Binding.(*windowBinding); ok && b.timers { // to the outbox of the input
		last.leaves = true
	}
	cfg := windowing.Config{Stages: stages, Lead: len(lead), Start: instant(), Limit: failpoint.Part(), Memory: b.memory}
	if len(lead) > 0 {
		p, err := newProgram(lead...)
		if err != nil {
			return err
		}
		cfg.Prepare = p.extract
		b.bare = b.blind()
	}
	var err error
	b.chain, err = windowing.NewChain(cfg)
	return err
}
