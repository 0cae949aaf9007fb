package host

import (
	"context"
	"math"
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host/failpoint"
)

// phase is how far the natural end of the input has come.
type phase uint8

const (
	running  phase = iota
	ending         // no batch comes any more; the last tick runs
	closing        // the state before the flush goes to disk
	flushing       // everything closes before its time, and is not saved
	revoking       // what earlier flushes put out and does not hold is taken back
	draining       // deliveries are waited for
	ended          // all delivered, Next says so
)

// owner is the goroutine that owns a host's state. Its files: owner.go the loop,
// step.go batches through the chain, commit.go the way to the disk.
type owner struct {
	*Host
	chain     *windowing.Chain
	positions *positions
	outbox    *outbox  // nil where rows are replied
	replies   *replies // nil where rows go to the outbox
	doubts    doubts   // where Config.Again is set
	flushed   *flushed

	ctx    context.Context // ends with the host
	cancel context.CancelFunc

	phase   phase
	current *Batch // of the step under way, nil for ticks
	step    any    // of the last batch, see Batch.Step
	target  Position
	heard   watermark.Time // the furthest that a batch has told of, in this run
	answer  []Reply
	foreign chan foreignResult // nil unless a foreign processor runs
	applied pending            // since the last write set
	flight  *writeSet          // with the committer
	sized   int                // what the next write set is expected to take
	spare   kv.Batch           // memory for it
	commits chan *writeSet
	results chan result
	lazy    time.Time // when settled rows alone are worth a commit
	lagged  time.Duration
	lag     bool
	flows   bool                     // as the last batch says
	parted  bool                     // a part of the step waits for its write set
	shared  map[string]bool          // topics whose partitions a consumer group has shared out in this run
	away    map[string]time.Duration // partitions that went to another member: when they no longer hold W back
	faulted bool
	acks    []func()
	ackable chan []func()
	hooks   []stopper // timers of the current turn
	report  reporter
	wake    time.Time // when housekeeping is due
}

// stopper releases a timer.
type stopper func()

// pending is what was applied since the last write set.
type pending struct {
	batches []*Batch
	replies []answered
	rows    int
	bytes   int64
	since   time.Time // of the first batch
	latest  time.Time // of the last batch
	dirty   bool      // the chain's state has changed
}

// answered is a batch whose rows wait for the commit.
type answered struct {
	to   chan<- []Reply
	rows []Reply
}

func newOwner(h *Host) *owner {
	cfg := &h.config
	o := &owner{Host: h, chain: cfg.Chain, positions: newPositions(cfg.Positions, cfg.Horizon),
		flushed: newFlushed(cfg.Edge, cfg.Chain.Stages()), commits: make(chan *writeSet, 1), results: make(chan result, 1), ackable: make(chan []func()),
		heard: watermark.Unset, shared: map[string]bool{}, away: map[string]time.Duration{}}
	if cfg.Reply {
		o.replies = newReplies(cfg.Edge, cfg.Limits.LogBytes, cfg.Horizon)
	} else {
		o.outbox = newOutbox(cfg.Edge, cfg.Flush || revises(cfg.Chain))
	}
	o.report = newReporter(cfg)
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

func revises(c *windowing.Chain) bool {
	for _, st := range c.Stages() {
		if st.Revises {
			return true
		}
	}
	return false
}

// run is the owner's life.
func (o *owner) run() {
	defer close(o.done)
	defer o.cancel()
	committed, acked := make(chan struct{}), make(chan struct{})
	go o.commit(committed)
	go acknowledge(o.ackable, acked)
	failpoint.Hit(failpoint.OnStart)
	for !o.turn() {
	}
	o.shutdown()
	close(o.commits)
	<-committed
	close(o.ackable)
	<-acked
	o.leaveForeign()
}

// turn does what can be done, then waits for one event. It says when to stop.
func (o *owner) turn() (stop bool) {
	o.work()
	o.startCommit()
	o.startFlush()
	o.work()
	o.endFlush()
	o.release()
	if o.phase == draining && o.drained() {
		o.phase = ended
		close(o.ended)
	}
	now := time.Now()
	d, deliver := o.delivery(now)
	ackable, acks := o.ackQueue()
	defer o.stopTimers()
	select {
	case <-o.stop:
		return true
	case b := <-o.inbox():
		o.took(b)
		o.take(b)
	case res := <-o.foreign:
		o.resume(res)
	case res := <-o.results:
		o.committed(res)
	case s := <-o.settles:
		o.settle(s)
	case m := <-o.moves:
		o.moved(m)
	case deliver <- d:
		o.outbox.handed(d.group)
	case ackable <- acks:
		o.acks = nil
	case <-o.tick():
		o.startTick()
	case <-o.timer(now):
		o.housekeep()
	}
	return false
}

// busy says that a step is under way.
func (o *owner) busy() bool { return o.chain.Open() || o.foreign != nil }

// inbox is the mailbox while another batch may be applied.
func (o *owner) inbox() <-chan *Batch {
	switch {
	case o.faulted || o.busy() || o.phase != running:
		return nil
	case o.applied.rows >= o.limits.PendingRows || o.applied.bytes >= 2*o.limits.CommitBytes:
		return nil
	case o.flight == nil && (o.applied.rows >= o.limits.CommitRows || o.applied.bytes >= o.limits.CommitBytes):
		return nil
	case o.outbox != nil && o.outbox.unread() >= o.limits.UnreadRows:
		return nil
	}
	return o.mailbox
}

// delivery is the next delivery and the channel that takes it, if there is one. It
// is made anew in every turn in which nobody takes it, so that its messages wait.
func (o *owner) delivery(now time.Time) (*Delivery, chan<- *Delivery) {
	if o.outbox == nil {
		return nil, nil
	}
	g := o.outbox.take(o.limits.BatchRows, now)
	if g == nil {
		return nil, nil
	}
	return &Delivery{group: g, host: o.Host}, o.Host.deliver
}

func (o *owner) settle(s settlement) {
	failpoint.Hit(failpoint.AfterDeliver)
	before := o.outbox.nacked
	o.outbox.settle(s.group, s.failed, time.Now())
	if n := o.outbox.nacked - before; n > 0 {
		o.report.count(Nacked, n, "")
	}
	if o.lazy.IsZero() {
		o.lazy = time.Now().Add(lazyCommit)
	}
}

// drained says that nothing is left to deliver, to commit or to acknowledge.
func (o *owner) drained() bool {
	return o.flight == nil && !o.applied.dirty && len(o.applied.batches) == 0 && len(o.acks) == 0 &&
		(o.outbox == nil || o.outbox.empty())
}

// now is the time that event time is compared with.
func (o *owner) now() watermark.Clock {
	mono := o.config.Clock.Mono()
	lagging := o.lag && mono-o.lagged <= o.config.LagTTL
	return watermark.Clock{Wall: o.config.Clock.Wall(), Mono: mono, Backlog: lagging || len(o.mailbox) > 0}
}

// tick is ready when a watermark may move by itself, or when an operator waits for
// the wall clock. A clock that is set is noticed with the next turn, at the next
// housekeeping.
func (o *owner) tick() <-chan time.Time {
	if o.faulted || o.busy() || o.phase != running || o.replies != nil || o.outbox.unread() >= o.limits.UnreadRows {
		return nil
	}
	at, ok := o.chain.Deadline()
	if wall, waits := o.chain.Alarm(); waits {
		now := o.now()
		wait := min(max(wall.Sub(now.Wall), 0), math.MaxInt64-now.Mono)
		if !ok || now.Mono+wait < at {
			at, ok = now.Mono+wait, true
		}
	}
	if !ok {
		return nil
	}
	c, release := o.config.Clock.Until(at)
	o.hooks = append(o.hooks, release)
	return c
}

// timer is ready when refused rows, settled rows or housekeeping are due. What is
// due already waits for a reader, or for the disk, and for no timer.
func (o *owner) timer(now time.Time) <-chan time.Time {
	at := o.wake
	if pause := o.pause(); pause > 0 && o.applied.dirty && len(o.mailbox) == 0 && o.flight == nil && o.chain.Whole() && !o.faulted {
		at = o.applied.latest.Add(pause)
	}
	if o.outbox != nil {
		if due, ok := o.outbox.due(); ok && due.After(now) && due.Before(at) {
			at = due
		}
		if !o.lazy.IsZero() && o.flight == nil && o.lazy.Before(at) {
			at = o.lazy
		}
	}
	t := time.NewTimer(max(time.Until(at), 0))
	o.hooks = append(o.hooks, func() { t.Stop() })
	return t.C
}

func (o *owner) stopTimers() {
	for _, stop := range o.hooks {
		stop()
	}
	o.hooks = o.hooks[:0]
}

// ackQueue is the acknowledgements that may be called, and who calls them.
func (o *owner) ackQueue() (chan<- []func(), []func()) {
	if len(o.acks) == 0 {
		return nil, nil
	}
	return o.ackable, o.acks
}

// acknowledge calls acknowledgements off the owner, in order.
func acknowledge(acks <-chan []func(), done chan<- struct{}) {
	defer close(done)
	for list := range acks {
		for _, ack := range list {
			failpoint.Hit(failpoint.BeforeAck)
			ack()
			failpoint.Hit(failpoint.AfterAck)
		}
	}
}

// housekeepEvery is how often gauges are set and gaps are closed.
const housekeepEvery = time.Second

// housekeep does what is due now and then.
func (o *owner) housekeep() {
	now := time.Now()
	if now.Before(o.wake) {
		return
	}
	o.wake = now.Add(housekeepEvery)
	if !o.faulted && !o.busy() {
		o.positions.closeGaps(o.config.Clock.Mono())
		o.leaveOut(o.config.Clock.Mono())
	}
	o.report.gauges(o)
}

// fault stops the reading for good.
func (o *owner) fault(err error) {
	if o.faulted {
		return
	}
	o.faulted = true
	o.report.count(Faults, 1, "")
	o.config.Log.Errorf("%s stops reading, nothing further is acknowledged: %v", o.config.Name, err)
	if o.config.OnFault != nil {
		o.config.OnFault(err)
	}
}
