package host

import (
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host/failpoint"
)

// foreignResult is what a foreign processor made of the rows of a step.
type foreignResult struct {
	rows []windowing.Row
	err  error
}

// take applies one batch from the mailbox.
func (o *owner) take(b *Batch) {
	if b.end {
		o.endInput()
		return
	}
	if o.lag = b.Lag; b.Lag {
		o.lagged = o.config.Clock.Mono()
	}
	o.flows = b.Flows
	now := o.now()
	o.report.count(RowsIn, int64(len(b.Entries)), "")
	o.current, o.answer, o.target = b, nil, Position{}
	rows, err := o.unseen(b)
	if err != nil {
		o.current = nil
		o.fault(err)
		return
	}
	hears := o.hears(b)
	switch {
	case len(rows) > 0:
	case hears && len(b.Entries) > 0:
		o.target = b.Entries[len(b.Entries)-1].Position
		o.doubts.last.applied(o.target)
	default:
		o.finish()
		return
	}
	o.applied.latest = time.Now()
	if !o.applied.dirty {
		o.applied.since = o.applied.latest
	}
	o.applied.rows += len(rows)
	o.applied.bytes += b.Bytes - b.Freed
	o.applied.dirty = true
	if r := b.Relayed; r != nil {
		o.chain.BeginRelayed(rows, r.Pair, r.Now, now)
		return
	}
	o.chain.Begin(rows, now)
}

// hears says that a batch tells of event time that no batch has told of. Even where all of
// its messages were applied before, in a run that the watermark does not remember, what is
// due then has to come out: no other batch may follow.
func (o *owner) hears(b *Batch) bool {
	if o.config.Again == nil || b.Relayed == nil || b.Relayed.Close <= o.heard {
		return false
	}
	o.heard = b.Relayed.Close
	return true
}

// unseen gives the rows of a batch whose positions were not applied before. Those
// that were get their rows again, where rows are replied.
func (o *owner) unseen(b *Batch) ([]windowing.Row, error) {
	if b.Step == nil || b.Step != o.step {
		o.positions.begin()
	}
	o.step = b.Step
	if o.config.Again != nil {
		o.doubts.begin(o.replies.next)
	}
	mono := o.config.Clock.Mono()
	rows := b.Rows[:0]
	var target *Position
	for i := range b.Rows {
		row := &b.Rows[i]
		pos := &b.Entries[row.Entry].Position
		fresh, err := o.positions.apply(pos, mono)
		if err != nil {
			return nil, err
		}
		if fresh {
			if pos.Known || target == nil { // under another one no row could be logged
				target = pos
			}
			if rows = b.Rows[:len(rows)+1]; len(rows) <= i { // rows are large: they stay where they are
				rows[len(rows)-1] = *row
			}
			if o.config.Again != nil {
				o.doubts.fresh(*pos)
			}
		} else if o.replies != nil {
			if err := o.replyAgain(b, row.Entry, *pos, mono); err != nil {
				return nil, err
			}
		}
	}
	if target != nil {
		o.target = *target
	}
	if o.doubts.came {
		if err := o.replyDoubt(b, mono); err != nil {
			return nil, err
		}
	}
	clear(b.Rows[len(rows):])
	if n := o.positions.skipped; n > 0 {
		o.report.count(Redelivered, n, "")
		o.positions.skipped = 0
	}
	return rows, nil
}

// work goes on with the step under way as far as it can.
func (o *owner) work() {
	for o.chain.Open() && o.foreign == nil && !o.faulted && (!o.chain.Whole() || o.roomForPart()) {
		switch o.chain.Run() {
		case windowing.Call:
			o.callForeign()
		case windowing.Broken:
			o.fault(o.chain.Err())
		case windowing.More:
			o.leave(o.chain.Take())
			failpoint.Hit(failpoint.MidClose)
			o.applied.dirty = true
			o.parted = true
		case windowing.Done:
			o.leave(o.chain.Take())
			o.applied.dirty = true
			o.finish()
		}
	}
}

// roomForPart says that another part of a step may come out: the one before it is
// in a write set, and somebody reads the rows.
func (o *owner) roomForPart() bool {
	return !o.parted && (o.outbox == nil || o.outbox.unread() < o.limits.UnreadRows)
}

// callForeign runs the pending foreign stage off the owner.
func (o *owner) callForeign() {
	stage, rows := o.chain.Pending()
	done := make(chan foreignResult, 1)
	o.foreign = done
	go func() {
		out, err := o.config.Foreign(o.ctx, stage, rows)
		done <- foreignResult{out, err}
	}()
}

// resume takes the rows of a foreign stage. An error means that the processor was
// abandoned: the step stays open and nothing of it is saved.
func (o *owner) resume(res foreignResult) {
	o.foreign = nil
	if res.err != nil {
		o.fault(res.err)
		return
	}
	o.chain.Resume(res.rows)
}

// leave hands the rows at the exit of the chain to the outbox or to the caller.
func (o *owner) leave(rows []windowing.Row) {
	if o.config.Leaving != nil {
		p, w := o.chain.Exit()
		o.config.Leaving(rows, p, w)
	}
	for i := range rows {
		row := &rows[i]
		if !o.flushed.pass(row, o.phase == flushing) {
			continue
		}
		m := o.config.Edge.Exit(row)
		if o.replies != nil {
			o.reply(row, m)
			continue
		}
		if o.phase == flushing && o.config.Store != nil {
			o.flushed.keep(row.Mark, m)
		}
		o.stage(row.Mark, m)
	}
}

// stage puts a row into the outbox.
func (o *owner) stage(mark *windowing.Mark, m windowing.Message) {
	key, revision := "", int64(0)
	if mark != nil {
		key, revision = mark.RowKey, mark.Revision
	}
	o.outbox.stage(m, key, revision)
}

// endFlush begins to wait for deliveries, once a flush is on disk and what earlier
// ones put out wrongly is taken back. The store is read for that, so that no commit
// may be under way.
func (o *owner) endFlush() {
	if o.phase != revoking || o.applied.dirty || o.flight != nil || o.faulted {
		return
	}
	o.phase = draining
	if o.config.Store != nil && o.flushed.holds() {
		o.takeBack()
	}
	o.startCommit()
}

// takeBack puts out delete rows for what an earlier flush put out and this one did
// not.
func (o *owner) takeBack() {
	_, w := o.chain.Exit()
	rows, err := o.flushed.stale(kv.SubReader(o.config.Store, flushedPrefix), w)
	if err != nil {
		o.fault(err)
		return
	}
	o.applied.dirty = true
	for i := range rows {
		o.stage(rows[i].Mark, o.config.Edge.Exit(&rows[i]))
	}
}

// reply gives a row back to the caller, and logs it under the position of the
// message that it derives from.
func (o *owner) reply(row *windowing.Row, m windowing.Message) {
	at := o.target
	if b := o.current; b != nil {
		var entry int
		if row.Entry >= 0 && int(row.Entry) < len(b.Entries) {
			entry = int(row.Entry)
			at = b.Entries[entry].Position
		} else {
			entry = o.carrier(b)
		}
		o.answer = append(o.answer, Reply{Entry: entry, Message: m})
	}
	o.replies.add(at, m, o.config.Clock.Mono())
}

// carrier is the message that rows of a close derive from: the last new one.
func (o *owner) carrier(b *Batch) int {
	for i := len(b.Entries) - 1; i >= 0; i-- {
		if p := b.Entries[i].Position; p.Known && placeOf(p) == placeOf(o.target) {
			return i
		}
	}
	return len(b.Entries) - 1
}

// finish ends the step under way: its batch is acknowledged with the next commit.
func (o *owner) finish() {
	o.report.tallies(o)
	if b := o.current; b != nil {
		o.current = nil
		b.Rows, b.Entries = nil, nil // their memory need not wait for the commit
		if b.Release != nil {
			b.Release()
		}
		o.applied.batches = append(o.applied.batches, b)
		if b.reply != nil {
			o.applied.replies = append(o.applied.replies, answered{b.reply, o.answer})
			o.answer = nil
		}
		return
	}
	switch o.phase {
	case ending:
		o.phase = draining
		if o.config.Flush {
			o.phase = closing
		}
	case flushing:
		o.phase = revoking
	}
}

// startFlush closes everything before its time, once the state from before it is
// in a write set.
func (o *owner) startFlush() {
	if o.phase == closing && !o.applied.dirty && !o.faulted {
		o.phase, o.applied.dirty = flushing, true
		o.chain.BeginFlush(o.now())
	}
}

// startTick begins a step for time that passed.
func (o *owner) startTick() {
	if o.busy() {
		return
	}
	o.applied.dirty = true
	o.chain.BeginTick(o.now())
}

// endInput begins the last steps: start-up waits are over, then everything closes
// where that was asked for.
func (o *owner) endInput() {
	if err := o.positions.end(); err != nil {
		o.fault(err)
		return
	}
	o.phase = ending
	o.chain.EndInput()
	o.applied.dirty = true
	o.chain.BeginTick(o.now())
}
