package drive

import (
	"context"
	"errors"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// Feed is the source of a test: an input whose batches the test hands over, and
// which sees every acknowledgement. It sends again what was refused, as Kafka
// does, and ends naturally when told to.
type Feed struct {
	mu     sync.Mutex // protects the fields below
	queue  []*Delivery
	ended  bool
	flying int           // deliveries that are not settled
	wake   chan struct{} // closed and replaced at each change
	closed int
}

// Delivery is one batch on its way.
type Delivery struct {
	make   func() service.MessageBatch
	feed   *Feed
	onAck  func() // before the acknowledgement counts, on the caller's goroutine
	done   chan struct{}
	nacks  int
	acks   int
	failed []int // by the last refusal; nil: all
}

func newFeed() *Feed {
	return &Feed{wake: make(chan struct{})}
}

// Send queues a batch. The function makes its messages anew for each delivery.
// onAck, if not nil, runs when the batch is acknowledged and before anybody who
// waits for the delivery knows.
func (f *Feed) Send(batch func() service.MessageBatch, onAck func()) *Delivery {
	d := &Delivery{make: batch, feed: f, onAck: onAck, done: make(chan struct{})}
	f.change(func() { f.queue = append(f.queue, d) })
	return d
}

// Acked is closed when the whole batch was acknowledged.
func (d *Delivery) Acked() <-chan struct{} { return d.done }

// Nacks is how often some of the batch was refused.
func (d *Delivery) Nacks() int {
	d.feed.mu.Lock()
	defer d.feed.mu.Unlock()
	return d.nacks
}

// End lets the input end naturally once all is sent and acknowledged.
func (f *Feed) End() { f.change(func() { f.ended = true }) }

// Waiting is how many batches nobody has taken yet.
func (f *Feed) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue)
}

// Closes is how often the input was closed.
func (f *Feed) Closes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

func (f *Feed) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	close(f.wake)
	f.wake = make(chan struct{})
}

// Connect implements service.BatchInput.
func (f *Feed) Connect(context.Context) error { return nil }

// ReadBatch implements service.BatchInput.
func (f *Feed) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	for {
		f.mu.Lock()
		if len(f.queue) > 0 {
			d := f.queue[0]
			f.queue = f.queue[1:]
			f.flying++
			only := d.failed
			f.mu.Unlock()
			batch, ack := d.deliver(only)
			return batch, ack, nil
		}
		wake, ended := f.wake, f.ended && f.flying == 0 // what is refused comes again
		f.mu.Unlock()
		if ended {
			return nil, nil, service.ErrEndOfInput
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// deliver makes the messages, all or those with the given numbers.
func (d *Delivery) deliver(only []int) (service.MessageBatch, service.AckFunc) {
	all := d.make()
	batch, numbers := all, make([]int, len(all))
	for i := range all {
		numbers[i] = i
	}
	if only != nil {
		batch, numbers = nil, only
		for _, i := range only {
			batch = append(batch, all[i])
		}
	}
	index := batch.Index()
	return batch, func(_ context.Context, err error) error {
		d.settle(err, index, numbers)
		return nil
	}
}

func (d *Delivery) settle(err error, index *service.Indexer, numbers []int) {
	if err == nil {
		if d.onAck != nil {
			d.onAck()
		}
		d.feed.change(func() {
			d.feed.flying--
			d.acks++
			if d.acks == 1 {
				close(d.done)
			}
		})
		return
	}
	failed := numbers
	var some *service.BatchError
	if errors.As(err, &some) {
		seen := map[int]bool{}
		some.WalkMessagesIndexedBy(index, func(i int, _ *service.Message, err error) bool {
			if err != nil && i >= 0 {
				seen[i] = true
			}
			return true
		})
		if len(seen) > 0 {
			failed = nil
			for i, n := range numbers {
				if seen[i] {
					failed = append(failed, n)
				}
			}
		}
	}
	d.feed.change(func() {
		d.feed.flying--
		d.nacks++
		d.failed = failed
		d.feed.queue = append([]*Delivery{d}, d.feed.queue...)
	})
}

// Close implements service.BatchInput.
func (f *Feed) Close(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}
