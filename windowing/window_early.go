package windowing

import (
	"slices"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// early is the alarm of early rows: groups of open windows that change stir until
// it rings, then they come out with the value that they have by then, all at once.
// The first change after it rang sets it again, so that a group comes out once in
// each stretch of WindowConfig.Early at most, and no later than that after a
// change. It is state, so that a restart keeps the time.
type early struct {
	at      watermark.Time // of the wall clock, valid where set
	set     bool
	changed bool // since the last Save
	// marked are the groups whose windows stir already, by slice and group: a slice
	// may be in many windows. No state, it saves work only.
	marked map[*timeSlice][]bool
}

func (e *early) ring(at watermark.Time) { e.at, e.set, e.changed = at, true, true }

func (e *early) silence() { e.set, e.changed = false, true }

// stir lets the groups that changed in a slice stir in its windows that are not
// final: those behind after.
func (w *Window) stir(in Instant, s *timeSlice, after Span) {
	if after.End < w.reached {
		after = endedBy(w.reached)
	}
	if w.early.marked == nil {
		w.early.marked = map[*timeSlice][]bool{}
	}
	marked := w.early.marked[s]
	if n := s.groups.count() - len(marked); n > 0 {
		marked = append(marked, make([]bool, n)...)
		w.early.marked[s] = marked
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
// windows that are final by now. A clock that was set back does not hold them up.
func (w *Window) wake(in Instant) {
	if w.config.Early == 0 || w.revisions.stirs == 0 {
		return
	}
	if next := in.Wall.Add(w.config.Early); !w.early.set || w.early.at > next {
		w.early.ring(next)
	}
	if in.Wall < w.early.at {
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
	if !w.early.changed {
		return
	}
	w.early.changed = false
	key := []byte{alarmTable}
	if w.early.set {
		out.Put(key, w.framed(windowVersion, kv.AppendVarint(w.payload[:0], int64(w.early.at))))
	} else {
		out.Delete(key, kv.After(key))
	}
}

func (w *Window) loadAlarm(_, value []byte) error {
	d, err := openWindowRecord(value)
	if err != nil {
		return err
	}
	w.early.at, w.early.set = watermark.Time(d.Varint()), true
	return d.Done()
}
