package host

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// Sentinels of a running host.
var (
	// ErrEnded says that the input has ended and everything was delivered.
	ErrEnded = errors.New("the input has ended")
	// ErrClosed says that the host was closed.
	ErrClosed = errors.New("the host is closed")
	// ErrConfiguration says that the stored state belongs to another host.
	ErrConfiguration = errors.New("the state belongs to another configuration")
)

// Entry is one offered message, beside its row.
type Entry struct{ Position Position }

// Batch is what is offered at once: one step of the chain.
type Batch struct {
	Rows    []windowing.Row // prepared by Chain.Prepare; Row.Entry is the index into Entries
	Entries []Entry
	Bytes   int64
	Freed   int64    // of those, what nobody holds any more once the batch is applied
	Lag     bool     // the source says that more is waiting
	Flows   bool     // more is waiting and comes without the acknowledgement of this
	Ack     func()   // called once the batch is on disk, never by the owner; nil: none
	Release func()   // called once Rows and Entries are used no more, by the owner; nil: none
	Relayed *Relayed // set where the chain begins with a relay
	Step    any      // what was one step upstream and comes in several batches has one value, nil: none

	reply chan<- []Reply
	end   bool
}

// Relayed is what a watermark outside of the chain has told about a batch.
type Relayed struct {
	windowing.Pair
	Now watermark.Time // W of its domain
}

// Runner is what an adapter drives: it offers batches, hands rows downstream and
// ends or closes the host.
type Runner interface {
	// Offer hands over a batch and waits while the host is full. The batch belongs
	// to the host afterwards. It may be called by several goroutines; the order of
	// calls is the order of steps.
	Offer(ctx context.Context, b *Batch) error
	// Next waits for rows to deliver. It gives ErrEnded after a natural end.
	Next(ctx context.Context) (*Delivery, error)
	// End says that the input has ended, after the last Offer.
	End(ctx context.Context) error
	// Close stops the host: what was applied is committed, open windows stay. It
	// returns when nothing of the host runs any more (but a foreign processor that
	// does not heed its context), or with ctx.
	Close(ctx context.Context) error
}

// Delivery is a batch of rows on its way downstream.
type Delivery struct {
	Messages []windowing.Message
	group    *group
	host     *Host
}

// Settle says what became of the rows: failed holds the indexes of those that
// were refused, ascending. It may be called from any goroutine, once, also after
// Close, when it does nothing.
func (d *Delivery) Settle(failed []int) {
	select {
	case d.host.settles <- settlement{d.group, failed}:
	case <-d.host.done:
	}
}

// All gives the indexes of all rows, for a refusal that names none.
func (d *Delivery) All() []int {
	all := make([]int, len(d.Messages))
	for i := range all {
		all[i] = i
	}
	return all
}

type settlement struct {
	group  *group
	failed []int
}

// Host runs a chain. Its methods may be called from any goroutine.
type Host struct {
	config Config
	limits Limits

	mailbox chan *Batch
	room    chan struct{} // a hint that the mailbox has room
	rows    atomic.Int64  // in the mailbox
	bytes   atomic.Int64

	deliver chan *Delivery
	settles chan settlement
	moves   chan moved
	ended   chan struct{} // closed when the input has ended and all is delivered
	stop    chan struct{} // closed by Close
	done    chan struct{} // closed when the owner is gone
	closing atomic.Bool
	through atomic.Bool // Through was called
}

var _ Runner = (*Host)(nil)

// Open restores the state and starts the host.
func Open(cfg Config) (*Host, error) {
	h := newHost(cfg)
	o := newOwner(h)
	if err := o.restore(); err != nil {
		return nil, err
	}
	go o.run()
	return h, nil
}

func newHost(cfg Config) *Host {
	cfg.defaults()
	return &Host{config: cfg, limits: cfg.Limits,
		mailbox: make(chan *Batch, 4096), room: make(chan struct{}, 1),
		deliver: make(chan *Delivery), settles: make(chan settlement, 64), moves: make(chan moved),
		ended: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{})}
}

// Prepare evaluates the expressions of the leading stages of the chain.
func (h *Host) Prepare(rows []windowing.Row) { h.config.Chain.Prepare(rows) }

// Offer implements Runner.
func (h *Host) Offer(ctx context.Context, b *Batch) error {
	if h.closing.Load() { // there may be room in the mailbox, but nobody looks
		return ErrClosed
	}
	for h.rows.Load() >= h.limits.MailboxRows || h.bytes.Load() >= h.limits.MailboxBytes {
		select {
		case <-h.room:
		case <-ctx.Done():
			return ctx.Err()
		case <-h.stop:
			return ErrClosed
		}
	}
	h.rows.Add(int64(len(b.Rows)))
	h.bytes.Add(b.Bytes)
	h.hint()
	select {
	case h.mailbox <- b:
		return nil
	case <-ctx.Done():
		h.took(b)
		return ctx.Err()
	case <-h.stop:
		h.took(b)
		return ErrClosed
	}
}

// hint wakes one goroutine that waits for room, if there is room.
func (h *Host) hint() {
	if h.rows.Load() < h.limits.MailboxRows && h.bytes.Load() < h.limits.MailboxBytes {
		select {
		case h.room <- struct{}{}:
		default:
		}
	}
}

// took records that a batch left the mailbox.
func (h *Host) took(b *Batch) {
	h.rows.Add(-int64(len(b.Rows)))
	h.bytes.Add(-b.Bytes)
	h.hint()
}

// Apply offers a batch and waits until it is on disk. It gives the rows that came
// out of it, for a host that replies.
func (h *Host) Apply(ctx context.Context, b *Batch) ([]Reply, error) {
	reply := make(chan []Reply, 1)
	b.reply = reply
	if err := h.Offer(ctx, b); err != nil {
		return nil, err
	}
	select {
	case rows := <-reply:
		return rows, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-h.done:
		select {
		case rows := <-reply:
			return rows, nil
		default:
			return nil, ErrClosed
		}
	}
}

// Next implements Runner.
func (h *Host) Next(ctx context.Context) (*Delivery, error) {
	select {
	case d := <-h.deliver:
		d.Messages = d.group.messages()
		return d, nil
	case <-h.ended:
		return nil, ErrEnded
	case <-h.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// End implements Runner.
func (h *Host) End(ctx context.Context) error { return h.Offer(ctx, &Batch{end: true}) }

// Through says, before Close, that whoever comes behind is through with everything
// that the host gave: see windowing.Chain.Settle.
func (h *Host) Through() { h.through.Store(true) }

// Close implements Runner.
func (h *Host) Close(ctx context.Context) error {
	if h.closing.CompareAndSwap(false, true) {
		close(h.stop)
	}
	select {
	case <-h.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Done is closed when nothing of the host runs any more.
func (h *Host) Done() <-chan struct{} { return h.done }

// closeGrace is how long Close waits for a commit that fails, and for foreign
// processors.
const closeGrace = time.Second
