package processors

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

func processorSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Windowing").
		Summary("Runs a chain of event-time operators over the batches of a pipeline.").
		Description(`One call is one transaction for the whole chain: state, watermark and positions are committed before rows are given back. A batch that the source sends again, because the delivery of its rows failed, gets the same rows again.

There are no timers and no end of input here: windows close when a row comes that moves the watermark. The ` + "`windowed`" + ` input has both. Batches have to arrive in order: set ` + "`pipeline.threads: 1`" + `, or use ` + "`input.processors`" + `.

With durable state every message needs a position, or gets an error; ` + "`position: none`" + ` accepts that a row whose delivery fails is lost.`).
		Fields(hostFields()...)
}

// windowedProcessor is the processor host, and every operator that stands on its
// own.
type windowedProcessor struct {
	*hosted
	finish func(ctx context.Context, b *host.Batch, messages service.MessageBatch) // before it is offered, may be nil

	calls   sync.RWMutex // read by calls, held by the close that ends them
	busy    atomic.Int32
	apart   func(batches []service.MessageBatch, of any) // called with what comes out of a step, may be nil
	threads atomic.Bool                                  // whether the log has said so
	told    atomic.Bool
	closing sync.Once
	gone    chan struct{}
	last    call
}

func newWindowedProcessor(conf *service.ParsedConfig, res *service.Resources) (service.BatchProcessor, error) {
	if hostInside() {
		return nil, errNested
	}
	h, err := open(conf, res, host.Config{Edge: edge{texts: &markTexts{}}, Reply: true})
	if err != nil {
		return nil, err
	}
	return &windowedProcessor{hosted: h, gone: make(chan struct{})}, nil
}

// ProcessBatch implements service.BatchProcessor.
func (w *windowedProcessor) ProcessBatch(ctx context.Context, messages service.MessageBatch) ([]service.MessageBatch, error) {
	w.calls.RLock()
	defer w.calls.RUnlock()
	if w.busy.Add(1) > 1 && !w.threads.Swap(true) {
		w.log.Warnf("%s: batches arrive from several threads at once, in no order: rows may be judged late by chance. Set pipeline.threads to 1, put the processor into input.processors, or use the windowed input", nameWindowed)
	}
	defer w.busy.Add(-1)
	w.last.begin(ctx)
	b, errs := w.batch(messages)
	for i := range b.Rows {
		row := &b.Rows[i]
		if err := w.unpositioned(b.Entries[i], errs[i]); err != nil && row.Flag == windowing.Data {
			invalidate(row, err)
		}
	}
	if w.finish != nil {
		w.finish(ctx, b, messages)
	}
	w.Prepare(b.Rows)
	step := b.Step // the batch is the host's from here on
	replies, err := w.Apply(ctx, b)
	if err != nil {
		// An error would send raw messages on as if they had been processed: the
		// batch is refused by not returning before the context ends.
		<-ctx.Done()
		return nil, ctx.Err()
	}
	out := derive(messages, replies)
	if w.apart != nil {
		w.apart(out, step)
	}
	return out, nil
}

// unpositioned says what is wrong with a message whose redelivery could not be
// recognised.
func (w *windowedProcessor) unpositioned(e host.Entry, err error) error {
	switch {
	case err != nil:
		return err
	case e.Position.Known || w.position.mode == host.None:
		return nil
	case w.durable:
		return errNoPosition
	case !dryRun() && !w.told.Swap(true):
		w.log.Warnf("%s: messages have no position: a row whose delivery fails is lost. Set position to {partition, offset} expressions, use the windowed input, or accept it with `position: none`", nameWindowed)
	}
	return nil
}

// batchLimit is how many rows a batch holds at most.
const batchLimit = 1000

// derive makes the messages that go on: copies of those that they come from, so
// that the framework knows which acknowledgement depends on them.
func derive(messages service.MessageBatch, replies []host.Reply) (out []service.MessageBatch) {
	for len(replies) > 0 {
		n := min(batchLimit, len(replies))
		batch := make(service.MessageBatch, n)
		for i, r := range replies[:n] {
			batch[i] = become(messages[r.Entry], r.Message.(*service.Message))
		}
		out = append(out, batch)
		replies = replies[n:]
	}
	return out
}

// become gives a copy of origin with the content of row. The metadata of the
// message that happened to carry a row is not kept.
func become(origin, row *service.Message) *service.Message {
	if origin == row {
		return row
	}
	m := origin.Copy()
	m.SetError(row.GetError())
	var old []string
	_ = m.MetaWalkMut(func(key string, _ any) error { old = append(old, key); return nil })
	for _, key := range old {
		m.MetaDelete(key)
	}
	_ = row.MetaWalkMut(func(key string, value any) error { m.MetaSetMut(key, value); return nil })
	if row.HasBytes() {
		if b, err := row.AsBytes(); err == nil {
			m.SetBytes(b)
		}
	} else if v, err := row.AsStructured(); err == nil {
		m.SetStructured(v)
	}
	if c := carriedBy(row); c != nil {
		return carry(unload(m), c)
	}
	return unload(m)
}

// Close implements service.BatchProcessor. It is called once for each thread,
// while others may still be processing.
func (w *windowedProcessor) Close(ctx context.Context) error {
	w.closing.Do(func() {
		go func() {
			defer close(w.gone)
			w.calls.Lock()
			defer w.calls.Unlock()
			if !w.last.forced() {
				w.Through()
			}
			_ = w.hosted.close(context.Background())
		}()
	})
	select {
	case <-w.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hostedProcessor stands in for an operator whose host calls it directly.
type hostedProcessor struct{}

// ProcessBatch implements service.BatchProcessor. A host never calls it.
func (hostedProcessor) ProcessBatch(context.Context, service.MessageBatch) ([]service.MessageBatch, error) {
	return nil, errNested
}

// Close implements service.BatchProcessor.
func (hostedProcessor) Close(context.Context) error { return nil }

func init() {
	spec := processorSpec()
	lintBy(nameWindowed, spec, lintHost)
	must(service.RegisterBatchProcessor(nameWindowed, spec, newWindowedProcessor))
}
