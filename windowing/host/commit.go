package host

import (
	"context"
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/windowing/host/failpoint"
)

const (
	lazyCommit     = time.Second            // the longest that delivered rows wait for their removal
	floodCommit    = time.Second            // the longest that applied rows wait for a commit while more arrive
	floodOut       = 300 * time.Millisecond // the same where rows came out and wait with them
	floodPause     = 2 * time.Millisecond   // how long nothing arrives when a flood pauses
	floodRows      = 4096                   // applied rows that make a flood
	flowPause      = 50 * time.Millisecond  // how long nothing comes of what a source said it has
	firstRetry     = 50 * time.Millisecond
	lastRetry      = 5 * time.Second
	retryLogPeriod = 30 * time.Second
)

// writeSet is one transaction and what waits for it.
type writeSet struct {
	batch   kv.Batch
	outs    []*out
	pending pending
	whole   bool // the chain's state is in it
}

// result is what became of a write set.
type result struct {
	err  error // the host ended before the store took it
	took time.Duration
	fail int64 // failed tries
}

// startCommit builds a write set and hands it to the committer, when there is
// something to commit and no better moment to wait for.
func (o *owner) startCommit() {
	if o.flight != nil {
		return
	}
	if !o.faulted && o.chain.Whole() && o.applied.dirty && o.due() {
		o.send(o.buildWhole())
		return
	}
	if !o.hasSettled() {
		o.lazy = time.Time{}
		return
	}
	last := o.phase == draining && o.outbox.unread() == 0 && o.outbox.flying == 0
	if last || !o.lazy.IsZero() && !time.Now().Before(o.lazy) {
		o.send(o.buildSettled())
	}
}

// hasSettled says that delivered rows are to be removed.
func (o *owner) hasSettled() bool { return o.outbox != nil && len(o.outbox.settled) > 0 }

// buildSettled removes delivered rows, and leaves everything else as it is: that
// may be done in the middle of a step, and when reading has stopped.
func (o *owner) buildSettled() *writeSet {
	ws := &writeSet{}
	o.outbox.saveSettled(kv.SubWriter(&ws.batch, outboxPrefix))
	return ws
}

// due says that nothing is won by waiting longer with a commit. As long as batches
// keep coming they share one; when they stop, the source may be waiting for its
// acknowledgements. The pause that counts as a stop is too short to slow down a
// source that lets floodRows be under way; one that does not wait for them has time.
func (o *owner) due() bool {
	switch {
	case o.parted || o.inbox() == nil:
		return true
	case time.Since(o.applied.since) >= o.patience():
		return true
	case len(o.mailbox) > 0:
		return false
	}
	pause := o.pause()
	return pause == 0 || !time.Now().Before(o.applied.latest.Add(pause))
}

// pause is how long nothing may arrive before that counts as a stop, 0 where it does
// at once.
func (o *owner) pause() time.Duration {
	switch {
	case o.flows:
		return flowPause
	case o.applied.rows >= floodRows:
		return floodPause
	}
	return 0
}

// patience is how long a flood may share a commit. A group that changes again and
// again is written once for each.
func (o *owner) patience() time.Duration {
	if o.outbox != nil && len(o.outbox.staged) > 0 {
		return floodOut
	}
	return floodCommit
}

// Prefixes of a host's records in its store.
const (
	chainPrefix    = "c/"
	positionPrefix = "p/"
	outboxPrefix   = "o/"
	repliesPrefix  = "r/"
	flushedPrefix  = "f/"
	targetKey      = "t"
	doubtKey       = "d"
	hostKey        = "h"
)

// buildWhole writes everything that changed since the last write set.
func (o *owner) buildWhole() *writeSet {
	ws := &writeSet{pending: o.applied, batch: o.spare, whole: !o.flushBegun()}
	o.applied, o.parted, o.spare = pending{}, false, kv.Batch{}
	w := &ws.batch
	w.Grow(o.sized)
	if ws.whole {
		o.chain.Save(kv.SubWriter(w, chainPrefix))
		o.positions.save(kv.SubWriter(w, positionPrefix))
	}
	o.flushed.save(kv.SubWriter(w, flushedPrefix))
	if o.replies != nil {
		put(w, []byte(targetKey), appendTarget(o.target))
		o.replies.save(kv.SubWriter(w, repliesPrefix))
		if o.config.Again != nil {
			o.doubts.save(w)
		}
	} else {
		ws.outs = o.outbox.save(kv.SubWriter(w, outboxPrefix))
	}
	o.sized = w.Size() + w.Size()/8 // neighbours are of a size
	return ws
}

// flushBegun says that the operators are spent.
func (o *owner) flushBegun() bool {
	return o.phase == flushing || o.phase == revoking || o.phase == draining && o.config.Flush
}

// send hands a write set to the committer. State in memory is committed at once.
func (o *owner) send(ws *writeSet) {
	o.flight, o.lazy = ws, time.Time{}
	if o.config.Store == nil {
		o.committed(result{})
		return
	}
	o.commits <- ws // one is in flight at most, the channel has room for it
}

// commit is the committer: it takes write sets to the store, in order, each until
// the store has it.
func (o *owner) commit(done chan<- struct{}) {
	defer close(done)
	for ws := range o.commits {
		o.results <- o.persist(o.ctx, ws)
	}
}

func (o *owner) persist(ctx context.Context, ws *writeSet) (res result) {
	start := time.Now()
	said := time.Time{}
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		failpoint.Hit(failpoint.BeforeCommit)
		err := o.config.Store.Commit(&ws.batch)
		if err == nil {
			failpoint.Hit(failpoint.AfterCommit)
			if f, ok := o.config.Store.(interface{ Folding() bool }); ok && f.Folding() {
				failpoint.Hit(failpoint.MidFold)
			}
			if res.fail > 0 {
				o.config.Log.Infof("%s: the state is on disk again after %d failed tries", o.config.Name, res.fail)
			}
			res.took = time.Since(start)
			return res
		}
		res.fail++
		if time.Since(said) >= retryLogPeriod {
			said = time.Now()
			o.config.Log.Errorf("%s: the state could not be written (%v); nothing is lost or acknowledged, the same write is tried again and input waits: make room on the disk or mend it", o.config.Name, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			res.err = err
			return res
		}
	}
}

// committed takes the committer's answer: what waited for the disk may go.
func (o *owner) committed(res result) {
	ws := o.flight
	o.flight = nil
	if res.fail > 0 {
		o.report.count(CommitErrors, res.fail, "")
	}
	if res.err != nil {
		return
	}
	if o.config.Store != nil {
		o.report.count(Commits, 1, "")
		o.report.meter.Took(CommitTime, res.took)
	}
	if w := &ws.batch; w.Cap() > o.spare.Cap() && w.Size() > w.Cap()/4 { // large memory for little goes
		o.spare = *w
		o.spare.Reset()
	}
	if ws.whole {
		o.chain.Committed()
	}
	if o.outbox != nil {
		o.outbox.saved(ws.outs)
	}
	o.let(ws.pending)
}

// let acknowledges batches whose effect is on disk, and answers their callers.
func (o *owner) let(p pending) {
	for _, b := range p.batches {
		if b.Ack != nil {
			o.acks = append(o.acks, b.Ack)
		}
	}
	for _, a := range p.replies {
		a.to <- a.rows // has room for one answer
	}
}

// release lets batches go that changed nothing, once all before them are on disk.
func (o *owner) release() {
	if o.flight != nil || o.applied.dirty || o.faulted || len(o.applied.batches) == 0 {
		return
	}
	p := o.applied
	o.applied = pending{}
	o.let(p)
}

// shutdown applies what waits in the mailbox and commits it, as far as that can be
// done in time: what is acknowledged need not come again. A step that waits for a
// foreign processor then is abandoned with everything after the last write set.
func (o *owner) shutdown() {
	grace, cancel := context.WithTimeout(o.ctx, closeGrace)
	defer cancel()
	timeout := grace.Done()
	for o.drain(timeout) {
	}
	o.await(timeout)
	o.settleAll()
	switch {
	case o.flight != nil:
	case o.faulted || !o.chain.Whole():
		if o.hasSettled() { // the grace may be spent on a foreign processor
			again, cancel := context.WithTimeout(o.ctx, closeGrace)
			defer cancel()
			o.send(o.buildSettled())
			o.await(again.Done())
		}
	default:
		if o.through.Load() && o.chain.Settle() || o.applied.dirty || o.hasSettled() {
			o.send(o.buildWhole())
			o.await(timeout)
		}
		o.release()
	}
	o.cancel()
	for len(o.acks) > 0 {
		acks := o.acks
		o.acks = nil
		o.ackable <- acks
	}
}

// settleAll takes what was settled before the stop.
func (o *owner) settleAll() {
	for {
		select {
		case s := <-o.settles:
			o.settle(s)
		default:
			return
		}
	}
}

// drain makes one step of what is under way or waits, and says whether to go on.
// Memory bounds it: the mailbox takes no more batches.
func (o *owner) drain(timeout <-chan struct{}) bool {
	o.work()
	if o.parted {
		if o.await(timeout); o.flight != nil {
			return false
		}
		o.startCommit()
		return true
	}
	if o.faulted || o.foreign != nil || o.busy() || o.phase != running {
		return o.waitForeign(timeout)
	}
	select {
	case b := <-o.mailbox:
		o.took(b)
		if !b.end { // an end that nobody has seen yet is one for the next run
			o.take(b)
		}
		return true
	default:
		return false
	}
}

// waitForeign waits for a foreign processor, where one runs.
func (o *owner) waitForeign(timeout <-chan struct{}) bool {
	if o.foreign == nil || o.faulted {
		return false
	}
	select {
	case res := <-o.foreign:
		o.resume(res)
		return true
	case <-timeout:
		return false
	}
}

// leaveForeign waits for a foreign processor that was told to stop. One that does
// not listen is left behind.
func (o *owner) leaveForeign() {
	if o.foreign == nil {
		return
	}
	select {
	case <-o.foreign:
	case <-time.After(closeGrace):
		o.config.Log.Warnf("%s: a processor between operators does not stop when it is told to; it is left behind", o.config.Name)
	}
}

// await waits for the write set in flight.
func (o *owner) await(timeout <-chan struct{}) {
	if o.flight == nil {
		return
	}
	select {
	case res := <-o.results:
		o.committed(res)
	case <-timeout:
		o.config.Log.Errorf("%s stops while its state cannot be written; what was not acknowledged comes again", o.config.Name)
	}
}
