package windowing

import (
	"fmt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// saveRevisions writes the revisions that changed, and deletes those of windows
// that are gone.
func (w *Window) saveRevisions(out kv.Writer) {
	t := &w.revisions
	w.deleteSpans(out, revisionTag, t.dropped)
	t.dropped = t.dropped[:0]
	for _, r := range t.dirty {
		w.key = appendSpanKey(w.key[:0], revisionTag, r.span)
		prefix := len(w.key)
		for _, number := range r.changed {
			w.key = append(w.key[:prefix], r.groups.key(number)...)
			payload := kv.AppendVarint(w.payload[:0], r.last[number])
			out.Put(w.key, w.framed(windowVersion, kv.AppendBool(payload, r.waits[number])))
			r.dirty[number], r.saved = false, true
		}
		r.changed = r.changed[:0]
	}
	clear(t.dirty)
	t.dirty = t.dirty[:0]
}

// loadRevision restores the revision of one group of a window.
func (w *Window) loadRevision(key, value []byte) error {
	span, name, err := splitGroupKey(key)
	if err != nil {
		return err
	}
	if !w.isWindow(span) {
		return fmt.Errorf("%s to %s is not one of these windows: %w", span.Start, span.End, kv.ErrCorrupt)
	}
	if err := w.checkGroup(name); err != nil {
		return err
	}
	d, err := openWindowRecord(value)
	if err != nil {
		return err
	}
	last, waits := d.Varint(), d.Bool()
	if last < 0 {
		d.Fail("revision %d", last)
	}
	if err := d.Done(); err != nil {
		return err
	}
	r := w.revisions.open(span)
	r.saved = true
	number, _ := r.place(name)
	r.last[number] = last
	if waits {
		if w.groupOf(w.state.within(span), name) == nil {
			return fmt.Errorf("a revision is due of a group that is not there: %w", kv.ErrCorrupt)
		}
		w.revisions.wait(r, number)
	}
	return nil
}
