package windowing

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// Fill says whether a window gives a row for a group that has none in it.
type Fill uint8

// The ways to fill.
const (
	NoFill   Fill = iota
	FillNull      // aggregates over no rows: counts are 0, others null
	FillZero      // 0 in place of null
)

// Fills are the ways as users write them.
var Fills = [...]string{NoFill: "none", FillNull: "null", FillZero: "zero"}

// filling remembers the groups that came out, for windows without rows of them.
type filling struct {
	length  time.Duration // how long after its last window with rows a group is filled
	last    map[string]watermark.Time
	latest  watermark.Time // the largest of last
	changed map[string]bool
	cleared bool // the records of all groups are to be deleted
}

func newFilling(length time.Duration) filling {
	return filling{length: length, last: map[string]watermark.Time{}, latest: watermark.Unset, changed: map[string]bool{}}
}

// next gives the window behind another one, if there is a group to be filled in it.
func (w *Window) nextFilled(after Span) (window Span, ok bool) {
	f := &w.filling
	if len(f.last) == 0 || after.End < watermark.Min || after.End > watermark.Max {
		return Span{}, false
	}
	window, ok = w.config.Assigner.Next(w.config.Assigner.Slice(after.End), after)
	return window, ok && window.End <= f.latest.Add(f.length)
}

// fillGroups puts the groups that are missing into the table of a window, behind
// those with rows, and forgets the groups that are filled no more.
func (w *Window) fillGroups(window Span, table *timeSlice) {
	f := &w.filling
	for group, last := range f.last {
		if window.End > last.Add(f.length) {
			delete(f.last, group)
			f.changed[group] = true
			continue
		}
		table.place([]byte(group))
	}
}

// seen notes the groups with rows of a window that came out.
func (f *filling) seen(window Span, table *timeSlice, groups int) {
	for n := range uint32(groups) {
		f.note(string(table.groups.key(n)), window.End)
	}
}

// note notes that a group has rows in a window with that end.
func (f *filling) note(group string, end watermark.Time) {
	if last, known := f.last[group]; known && last >= end {
		return
	}
	f.last[group], f.changed[group] = end, true
	f.latest = max(f.latest, end)
}

// expire forgets all groups once event time is past the last filled window.
func (f *filling) expire(reached watermark.Time) {
	if len(f.last) > 0 && f.latest.Add(f.length) <= reached {
		clear(f.last)
		clear(f.changed)
		f.cleared = true
	}
}

// zeros replaces nulls in the values of a filled row.
func zeros(values []agg.Value) {
	for i, v := range values {
		if v.IsNull() {
			values[i] = agg.Int(0)
		}
	}
}

func (w *Window) saveFilling(out kv.Writer) {
	f := &w.filling
	if f.cleared {
		out.Delete([]byte{fillTable}, kv.PrefixEnd([]byte{fillTable}))
		f.cleared = false
	}
	for _, group := range slices.Sorted(maps.Keys(f.changed)) {
		w.key = append(append(w.key[:0], fillTable), group...)
		if last, ok := f.last[group]; ok {
			out.Put(w.key, w.framed(windowVersion, kv.AppendVarint(w.payload[:0], int64(last))))
		} else {
			out.Delete(w.key, kv.After(w.key))
		}
	}
	clear(f.changed)
}

// loadFilling restores one group that is filled.
func (w *Window) loadFilling(key, value []byte) error {
	group := key[1:]
	if err := w.checkGroup(group); err != nil {
		return err
	}
	d, err := openWindowRecord(value)
	if err != nil {
		return err
	}
	last := watermark.Time(d.Varint())
	if err := d.Done(); err != nil {
		return err
	}
	if last == watermark.Unset {
		return fmt.Errorf("a group whose last window ends at no time: %w", kv.ErrCorrupt)
	}
	w.filling.last[string(group)] = last
	w.filling.latest = max(w.filling.latest, last)
	return nil
}
