package windowing

import (
	"slices"
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// alarm is when early rows come out: what changes before that comes out then, all
// at once, with the value that it has by then. The first change after it rang sets
// it again, so that a row comes out once in each stretch of the setting at most,
// and no later than that after a change. It is state, so that a restart keeps the
// time.
type alarm struct {
	at      watermark.Time // of the wall clock, valid where set
	set     bool
	changed bool // since the last Save
}

func (a *alarm) ring(at watermark.Time) { a.at, a.set, a.changed = at, true, true }

func (a *alarm) silence() { a.set, a.changed = false, true }

// due says whether it rings; every is the setting, which bounds how far away it is
// where the clock was set back.
func (a *alarm) due(wall watermark.Time, every time.Duration) bool {
	if next := wall.Add(every); !a.set || a.at > next {
		a.ring(next)
	}
	return wall >= a.at
}

// early is what a window operator knows of early rows: groups of open windows that
// change stir until the alarm rings.
type early struct {
	alarm
	// marked are the groups whose windows stir already, by the start of their slice
	// and their number: a slice may be in many windows. No state, it saves work only.
	marked map[watermark.Time][]bool
}

// stir lets the groups that changed in a slice stir in its windows that are not
// final: those behind after.
func (w *Window) stir(in Instant, s *timeSlice, after Span) {
	if after.End < w.reached {
		after = endedBy(w.reached)
	}
	if w.early.marked == nil {
		w.early.marked = map[watermark.Time][]bool{}
	}
	marked := w.early.marked[s.span.Start]
	if n := s.groups.count() - len(marked); n > 0 {
		marked = append(marked, make([]bool, n)...)
		w.early.marked[s.span.Start] = marked
	}
	var fresh []uint32
	for _, number := range s.fresh.groups {
		if !marked[number] {
			marked[number] = true
			fresh = append(fresh, number)
		}
	}
	for len(fresh) > 0 {
		window, ok := w.config.Assigner.Next(s.span, after)
		if !ok {
			break
		}
		after = window
		r := w.revisions.open(window)
		for _, number := range fresh {
			n, _ := r.place(s.groups.key(number))
			w.revisions.stir(r, n)
		}
	}
	if !w.early.set && w.revisions.stirs > 0 {
		w.early.ring(in.Wall.Add(w.config.Early))
	}
}

// stir notes that a group has to come out when the alarm rings.
func (t *revisionTable) stir(r *revised, number uint32) {
	if r.rows[number].stirs {
		return
	}
	r.rows[number].stirs = true
	r.stirring = append(r.stirring, number)
	t.stirs++
	t.touch(r, number)
}

// calm takes the groups of a window out that stir.
func (t *revisionTable) calm(r *revised) {
	for _, number := range r.stirring {
		r.rows[number].stirs = false
		t.touch(r, number)
	}
	t.stirs -= len(r.stirring)
	r.stirring = nil
}

// wake lets the groups that stir come out once the wall clock says so, except in
// windows that are final by now.
func (w *Window) wake(in Instant) {
	if w.config.Early == 0 || w.revisions.stirs == 0 {
		return
	}
	if !w.early.due(in.Wall, w.config.Early) {
		return
	}
	t := &w.revisions
	from, _ := slices.BinarySearchFunc(t.ordered, endedBy(w.reached), compareRevised)
	for _, r := range t.ordered[from:] {
		for _, number := range r.stirring {
			t.wait(r, number)
		}
		t.calm(r)
	}
	clear(w.early.marked)
	w.early.silence()
}

// rest silences an alarm that nothing waits for.
func (w *Window) rest() {
	if w.early.set && w.revisions.stirs == 0 {
		w.early.silence()
	}
	if w.revisions.stirs == 0 {
		clear(w.early.marked)
	}
}

// Alarm is when early rows come out by the wall clock.
func (w *Window) Alarm() (wall watermark.Time, ok bool) {
	return w.early.at, w.early.set && w.config.Early > 0
}

func (w *Window) saveAlarm(out kv.Writer) {
	if w.early.changed {
		w.early.save(out, w.framed(windowVersion, kv.AppendVarint(w.payload[:0], int64(w.early.at))))
	}
}

func (w *Window) loadAlarm(_, value []byte) error {
	d, err := openWindowRecord(value)
	if err != nil {
		return err
	}
	return w.early.load(d)
}

// save writes the record of the alarm, or deletes it.
func (a *alarm) save(out kv.Writer, record []byte) {
	a.changed = false
	key := []byte{alarmTable}
	if a.set {
		out.Put(key, record)
	} else {
		out.Delete(key, kv.After(key))
	}
}

func (a *alarm) load(d *kv.Decoder) error {
	a.at, a.set = watermark.Time(d.Varint()), true
	return d.Done()
}
