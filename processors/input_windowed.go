package processors

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing/host"
)

const (
	fieldInput = "input"
	fieldOnEnd = "on_end"
)

func inputSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Windowing").
		Summary("Reads another input through a chain of event-time operators, and keeps their state.").
		Description(`The chain's state, the watermark, the positions of the messages that were applied and the rows that are not delivered yet are committed together; a message is acknowledged to its source after that. A row is handed to the pipeline until an output has taken it. A restart, also after a kill, goes on as if nothing had happened: what a source sends again is recognised by its position.

A row may be delivered more than once, with the same metadata ` + "`windowed_row_id`" + `; of several rows with the same ` + "`windowed_row_key`" + ` the one with the largest ` + "`windowed_revision`" + ` counts.

Input waits while rows that came out are not read downstream.`).
		Field(service.NewInputField(fieldInput).Description("Where messages come from. Its own `processors` run before positions are read; with `position: ordinal` they must be deterministic.")).
		Fields(hostFields()...).
		Field(optionField(fieldOnEnd, "keep", "flush").Default("keep").
			Description("What becomes of open windows when the input ends by itself: they stay in the state, or come out before their time as well. A stop never closes windows."))
}

// windowedInput is the input host.
type windowedInput struct {
	*hosted
	child *service.OwnedInput

	reading context.Context // ends when nothing is to be read any more
	stop    context.CancelFunc
	start   sync.Once
	read    chan struct{} // closed when the reader is gone
	closed  sync.Once
	told    bool // the log has said that positions are missing
}

func newWindowedInput(conf *service.ParsedConfig, res *service.Resources) (service.BatchInput, error) {
	if hostInside() {
		return nil, errNested
	}
	onEnd, err := parseOption(conf, fieldOnEnd, "keep", "flush")
	if err != nil {
		return nil, err
	}
	child, moves, err := buildInput(conf)
	if err != nil {
		return nil, err
	}
	h, err := open(conf, res, host.Config{Edge: edge{texts: &markTexts{}}, Flush: onEnd == "flush"})
	if err != nil {
		closeChild(child)
		return nil, err
	}
	for _, m := range moves {
		m.attach(h)
	}
	w := &windowedInput{hosted: h, child: child, read: make(chan struct{})}
	w.reading, w.stop = context.WithCancel(context.Background())
	return w, nil
}

// Connect implements service.BatchInput. The child connects by itself.
func (w *windowedInput) Connect(context.Context) error {
	w.start.Do(func() { go w.reader() })
	return nil
}

// reader offers what the child gives until it ends or nothing is to be read.
func (w *windowedInput) reader() {
	defer close(w.read)
	for {
		messages, ack, err := w.child.ReadBatch(w.reading)
		switch {
		case err == nil: // also where a stop came meanwhile
		case w.reading.Err() != nil:
			return
		case errors.Is(err, service.ErrEndOfInput):
			_ = w.End(w.reading)
			return
		default:
			w.log.Errorf("%s: input: %v", nameWindowed, err)
			continue
		}
		if w.offer(messages, ack) != nil || w.reading.Err() != nil {
			return
		}
	}
}

func (w *windowedInput) offer(messages service.MessageBatch, ack service.AckFunc) error {
	b, errs := w.offered(messages)
	for i, err := range errs {
		invalidate(&b.Rows[i], err)
	}
	w.tellOnce(b)
	w.Prepare(b.Rows)
	b.Ack = func() {
		if err := ack(context.Background(), nil); err != nil {
			w.log.Warnf("%s: the source did not take an acknowledgement and may send its messages again: %v", nameWindowed, err)
		}
	}
	err := w.Offer(w.reading, b)
	if err != nil && w.reading.Err() != nil {
		// A stop. What was read is applied with what waits already: it cannot be
		// given back, and the child closes only when it is acknowledged.
		ctx, cancel := context.WithTimeout(context.Background(), childGrace)
		defer cancel()
		err = w.Offer(ctx, b)
	}
	return err
}

// tellOnce says that messages without positions may count twice.
func (w *windowedInput) tellOnce(b *host.Batch) {
	unknown := func(e host.Entry) bool { return !e.Position.Known }
	if w.told || w.position.mode == host.None || !slices.ContainsFunc(b.Entries, unknown) {
		return
	}
	w.told = true
	w.log.Warnf("%s: messages have no position: what the source sends again after a crash counts twice. Set position to {partition, offset} expressions, to ordinal for an input that always starts at the beginning, or to none to accept it", nameWindowed)
}

// ReadBatch implements service.BatchInput.
func (w *windowedInput) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	d, err := w.Next(ctx)
	switch {
	case errors.Is(err, host.ErrEnded):
		return nil, nil, service.ErrEndOfInput
	case err != nil:
		w.stop() // a stop: what is in hand is settled until Close
		return nil, nil, err
	}
	return mint(d), func(_ context.Context, err error) error {
		d.Settle(refused(d, err))
		return nil
	}, nil
}

// refused gives the indexes of the rows that an error names, of all rows where it
// names none.
func refused(d *host.Delivery, err error) []int {
	if err == nil {
		return nil
	}
	var batchErr *service.BatchError
	if !errors.As(err, &batchErr) || batchErr.IndexedErrors() == 0 {
		return d.All()
	}
	var failed []int
	//lint:ignore SA1019 the index that it gives is not looked at
	batchErr.WalkMessages(func(_ int, m *service.Message, err error) bool {
		if i, ok := placeIn(d, m); ok && err != nil {
			failed = append(failed, i)
		}
		return true
	})
	if len(failed) == 0 { // its messages are none of ours
		return d.All()
	}
	slices.Sort(failed)
	return slices.Compact(failed)
}

// Close implements service.BatchInput.
func (w *windowedInput) Close(ctx context.Context) error {
	var err error
	w.closed.Do(func() {
		w.stop()
		w.start.Do(func() { close(w.read) })
		<-w.read
		err = w.hosted.close(ctx)
		closeChild(w.child)
	})
	return err
}

// childGrace is how long a child may take to close. It waits for acknowledgements
// that never come where a commit failed: then it is abandoned, and its source
// sends the messages again.
const childGrace = time.Second

func closeChild(child *service.OwnedInput) {
	ctx, cancel := context.WithTimeout(context.Background(), childGrace)
	defer cancel()
	_ = child.Close(ctx)
}

func init() {
	spec := inputSpec()
	lintBy("input "+nameWindowed, spec, lintHost)
	must(service.RegisterBatchInput(nameWindowed, spec, newWindowedInput))
}
