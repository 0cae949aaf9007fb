package windowing

import (
	"fmt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// revisionVersion is the version of the records of revisions.
const revisionVersion = 2

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
			row := &r.rows[number]
			payload := kv.AppendVarint(w.payload[:0], row.last)
			payload = kv.AppendBool(kv.AppendBool(payload, row.waits), row.stirs)
			out.Put(w.key, w.framed(revisionVersion, kv.AppendBool(payload, row.out)))
			row.dirty, r.saved = false, true
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
		return w.strangeSpan("one", span)
	}
	if err := w.checkGroup(name); err != nil {
		return err
	}
	row, err := readRevision(value)
	if err != nil {
		return err
	}
	if !w.config.Revises() { // early rows were there once: their numbers count, and no more come
		row.waits, row.stirs = false, false
	}
	if (row.waits || row.stirs) && w.groupOf(w.state.within(span), name) == nil {
		return fmt.Errorf("a revision is due of a group that is not there: %w", kv.ErrCorrupt)
	}
	r := w.revisions.open(span)
	r.saved = true
	number, _ := r.place(name)
	waits, stirs := row.waits, row.stirs
	row.waits, row.stirs = false, false
	r.rows[number] = row
	if waits {
		w.revisions.wait(r, number)
	}
	if stirs {
		w.revisions.stir(r, number)
	}
	return nil
}

// readRevision reads a record. Version 1 knew neither early rows nor rows that
// were taken back.
func readRevision(value []byte) (row revision, err error) {
	version, payload, err := kv.Record(value)
	if err != nil {
		return row, err
	}
	if version < 1 || version > revisionVersion {
		return row, unknownVersion(version, revisionVersion)
	}
	d := kv.NewDecoder(payload)
	row.last, row.waits = d.Varint(), d.Bool()
	row.out = row.last > 0
	if version > 1 {
		row.stirs, row.out = d.Bool(), d.Bool()
	}
	if row.last < 0 || row.out && row.last == 0 {
		d.Fail("revision %d", row.last)
	}
	return row, d.Done()
}
