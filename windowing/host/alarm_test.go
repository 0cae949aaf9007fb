package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// alarmCode is code of a keyed state that answers each row after as many seconds of
// the wall clock as n says, counted from the start of the test.
type alarmCode struct{ start watermark.Time }

func (c alarmCode) Event(_ windowing.KeyedCall, row *windowing.Row) (e windowing.KeyedEffect, err error) {
	n := row.Message.(*note)
	e.Timers = []windowing.KeyedTimer{{Name: "alarm", At: c.start + watermark.Time(n.n)*second, Processing: true}}
	return e, nil
}

func (c alarmCode) Timer(call windowing.KeyedCall, timer windowing.KeyedTimer) (e windowing.KeyedEffect, err error) {
	key, _, err := agg.DecodeKey(call.Key)
	e.Rows = []windowing.Message{&note{at: timer.At, key: key.AsString(), n: int64((timer.At - c.start) / second)}}
	return e, err
}

type keyedBinding struct{ failing }

func (keyedBinding) Extract(rows []windowing.Row) {
	for i := range rows {
		if row := &rows[i]; row.Flag == windowing.Data {
			row.Key = agg.String(row.Message.(*note).key).AppendKey(nil)
		}
	}
}

func (keyedBinding) Render(res *windowing.Result) windowing.Message { return res.Message }

func alarmed() []windowing.Stage {
	k := windowing.NewKeyed(windowing.KeyedConfig{Name: "state", Evaluator: alarmCode{newClock().wall}})
	return []windowing.Stage{watermarkStage(0), {Name: "state", Kind: "keyed_state", Operator: k, Binding: keyedBinding{}, Definition: k.Definition()}}
}

func after(seconds int64, key string) *note { return &note{at: second, key: key, n: seconds} }

// A timer of the wall clock fires when its time has come, without a row, in the order
// of the times, also one that was set before a restart.
func TestWallClockWakesTheHost(t *testing.T) {
	r := newRig(t, alarmed, nil).open()
	r.wait(r.offer(events(0, after(20, "a"), after(10, "b"), after(30, "c"))), "the commit")
	r.clock.pass(10*time.Second - 1)
	r.untouched()
	r.clock.pass(1)
	require.Equal(t, []string{"b=10"}, texts(r.take(1)))

	r.wait(r.offer(events(3, after(25, "a"))), "the commit")
	r.clock.pass(14 * time.Second)
	r.untouched()
	r.reopen()
	r.clock.pass(time.Second)
	require.Equal(t, []string{"a=25"}, texts(r.take(1)))

	r = r.kill()
	r.clock.pass(time.Hour)
	for last := ""; last != "c=30"; { // after those that were not acknowledged to the disk
		for _, last = range texts(notesOf(r.next())) {
			require.Contains(t, []string{"b=10", "a=25", "c=30"}, last)
		}
	}
}

// What is far away does not overflow the clock.
func TestWallClockFarAway(t *testing.T) {
	r := newRig(t, alarmed, nil).open()
	far := &note{at: second, key: "a", n: int64((watermark.Max-newClock().wall)/second) - 1}
	r.wait(r.offer(events(0, far)), "the commit")
	r.untouched()
	r.wait(r.offer(events(1, after(5, "b"))), "the commit")
	r.clock.pass(5 * time.Second)
	require.Equal(t, []string{"b=5"}, texts(r.take(1)))
}
