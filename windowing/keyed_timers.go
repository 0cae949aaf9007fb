package windowing

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// Faults of the code of a keyed state.
var (
	// ErrTimer: a timer that fires sets one that is not later. The row that says so
	// comes out, the timer is not set.
	ErrTimer = errors.New("a timer must be later than the one that sets it")
	// ErrOnTimer: the code failed for a timer, which is gone.
	ErrOnTimer = errors.New("on_timer failed, the timer is gone and the state is as before")
)

// keyedOrigin is the call that rows come of.
type keyedOrigin struct {
	key    []byte
	number int64
	time   watermark.Time // of the rows
	rows   int            // that came out
}

// result makes the next row of a call.
func (k *Keyed) result(o *keyedOrigin, m Message, err error) *Result {
	k.rest = strconv.AppendInt(append(k.rest[:0], ','), o.number, 10)
	k.rest = strconv.AppendInt(append(k.rest, ','), int64(o.rows), 10)
	k.payload = k.identity.AppendRowKey(k.payload[:0], o.key, k.rest)
	o.rows++
	return &Result{Time: o.time, Timing: OnTime, Revision: 1, RowKey: string(k.payload), Key: o.key, Message: m, Err: err}
}

// emit puts out the rows of a call.
func (k *Keyed) emit(o *keyedOrigin, rows []Message, out *Output) {
	for _, m := range rows {
		out.Emit(k.result(o, m, nil))
	}
}

// Advance fires the timers that are due, see Keyed. What has fired is no longer
// state, so that a restart goes on with the rest.
func (k *Keyed) Advance(in Instant, limit int, out *Output) (done bool) {
	if in.Close > k.reached {
		k.reached, k.progress = in.Close, true
	}
	budget := limit * silentPerResult
	for {
		t := k.due(in.Wall)
		looked, came, err := k.bringDue(t)
		budget -= came
		switch {
		case err != nil:
			out.Break(err)
			return false
		case looked && budget > 0:
		case t == nil && !looked:
			k.end()
			k.shed()
			if err := k.renew(); err != nil {
				out.Break(err)
				return false
			}
			return true
		case budget <= 0:
			return false
		case t.kind == expiryTimer:
			k.forget(t.owner)
			budget--
		default:
			budget -= silentPerResult * max(k.fire(in, t, out), 1)
		}
	}
}

// due is the timer that fires next, nil where none is due.
func (k *Keyed) due(wall watermark.Time) *keyTimer {
	if t := k.event.next(k.reached); t != nil {
		return t
	}
	if k.spent() {
		wall = watermark.EndOfTime
	}
	return k.wall.next(wall)
}

// spent says that everything has come to its end.
func (k *Keyed) spent() bool { return k.reached == watermark.EndOfTime }

// end forgets, at the end of time, the keys that wait for nothing.
func (k *Keyed) end() {
	if !k.spent() {
		return
	}
	for _, it := range k.keys {
		k.forget(it)
	}
	k.away.drop(k)
}

// fire runs the code for a timer and says how many rows came out.
func (k *Keyed) fire(in Instant, t *keyTimer, out *Output) (rows int) {
	it := t.owner
	k.cancel(t)
	o := keyedOrigin{key: []byte(it.key), number: t.number, time: max(t.at, in.Late)}
	call := KeyedCall{Key: o.key, State: it.state, Watermark: k.reached}
	if k.spent() {
		call.Watermark = in.Late
	}
	timer := KeyedTimer{Name: t.name, At: t.at, Processing: t.kind == wallTimer}
	effect, err := k.config.Evaluator.Timer(call, timer)
	if err != nil {
		out.Emit(k.result(&o, timer, fmt.Errorf("timer %s: %w: %w", timer, ErrOnTimer, err)))
		k.settle(it)
		return o.rows
	}
	k.change(it, &effect)
	k.emit(&o, effect.Rows, out)
	for _, set := range effect.Timers {
		if now := k.soonest(in, t, set); set.At <= now {
			out.Emit(k.result(&o, set, fmt.Errorf("timer %s sets %s, which is not later than %s: %w", timer, set, now, ErrTimer)))
		} else if !k.spent() {
			k.set(it, set)
		}
	}
	k.settle(it)
	return o.rows
}

// soonest is what a timer has to be later than when another one sets it.
func (k *Keyed) soonest(in Instant, firing *keyTimer, set KeyedTimer) watermark.Time {
	switch {
	case set.Processing == (firing.kind == wallTimer):
		return firing.at
	case k.spent():
		return watermark.Unset
	case set.Processing:
		return in.Wall
	}
	return k.reached
}

// set sets a timer of a key.
func (k *Keyed) set(it *keyedKey, set KeyedTimer) {
	kind := eventTimer
	if set.Processing {
		kind = wallTimer
	}
	at := slices.IndexFunc(it.timers, func(t *keyTimer) bool { return t.name == set.Name })
	if at >= 0 && it.timers[at].kind != kind {
		k.cancel(it.timers[at])
		at = -1
	}
	if at >= 0 {
		t := it.timers[at]
		t.at, t.number = set.At, k.next()
		k.heapOf(t).moved(t)
		return
	}
	t := &keyTimer{owner: it, name: set.Name, kind: kind, at: set.At, number: k.next()}
	it.timers = append(it.timers, t)
	k.heapOf(t).push(t)
}

// cancel takes a timer away from its key.
func (k *Keyed) cancel(t *keyTimer) {
	it := t.owner
	at := slices.Index(it.timers, t)
	it.timers = slices.Delete(it.timers, at, at+1)
	k.heapOf(t).remove(t)
}

func (k *Keyed) heapOf(t *keyTimer) *timerHeap {
	if t.kind == wallTimer {
		return &k.wall
	}
	return &k.event
}

// Alarm is when the first timer of the wall clock fires.
func (k *Keyed) Alarm() (wall watermark.Time, ok bool) {
	t := k.wall.first()
	if t == nil {
		return 0, false
	}
	return t.at, true
}
