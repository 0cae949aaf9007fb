package windowing

import (
	"bytes"
	"fmt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// The records of a window operator.
//
//	p                          progress: the close that was reached, the last window
//	                           that was handed out, and the cursor
//	g <end> <start> <group>    a group of a slice: its accumulators, in the order of their names
//	r <end> <start> <group>    a group of a window: its last revision, and what is due
//	e                          when early rows come out by the wall clock
//	f <group>                  a group that windows are filled with: the end of its last window with rows
//
// Instants are order-preserving, the group is canonical and ends the key: what a
// slice or window holds is one range, and they stand in the order in which they
// close.
const (
	progressTable = 'p'
	groupTable    = 'g'
	revisionTag   = 'r'
	alarmTable    = 'e'
	fillTable     = 'f'
	windowVersion = 1
	// Version 1 of the progress did not name the last window: what was handed out
	// was gone.
	progressVersion = 2
)

// Save writes the groups that changed, deletes the slices that are through and
// notes how far Advance came.
func (w *Window) Save(out kv.Writer) {
	w.deleteSpans(out, groupTable, w.state.dropped)
	w.state.dropped = w.state.dropped[:0]
	for _, s := range w.state.dirty {
		w.saveSlice(out, s)
	}
	clear(w.state.dirty)
	w.state.dirty = w.state.dirty[:0]
	w.saveRevisions(out)
	w.saveAlarm(out)
	w.saveFilling(out)
	if w.progress {
		out.Put([]byte{progressTable}, w.framed(progressVersion, w.appendProgress(w.payload[:0])))
		w.progress = false
	}
}

func (w *Window) deleteSpans(out kv.Writer, table byte, spans []Span) {
	for _, span := range spans {
		from := appendSpanKey(w.key[:0], table, span)
		out.Delete(from, kv.PrefixEnd(from))
	}
}

func (w *Window) saveSlice(out kv.Writer, s *timeSlice) {
	w.key = appendSpanKey(w.key[:0], groupTable, s.span)
	prefix := len(w.key)
	for number := range s.unsaved() {
		payload := w.payload[:0]
		for _, acc := range w.of(s, number) {
			payload = acc.Append(payload)
		}
		w.key = append(w.key[:prefix], s.groups.key(number)...)
		out.Put(w.key, w.framed(windowVersion, payload))
		s.dirty[number], s.saved = false, true
		w.weight = len(payload)
	}
	s.changed = s.changed[:0]
}

// framed makes a record of a payload, both in memory that is used again.
func (w *Window) framed(version byte, payload []byte) []byte {
	w.payload = payload
	w.record = kv.AppendRecord(w.record[:0], version, payload)
	return w.record
}

func appendSpanKey(b []byte, table byte, s Span) []byte {
	return kv.AppendTime(kv.AppendTime(append(b, table), s.End), s.Start)
}

func (w *Window) appendProgress(b []byte) []byte {
	b = kv.AppendVarint(b, int64(w.reached))
	b = appendSpan(b, w.emitted)
	b = kv.AppendBool(b, w.cursor.set)
	if w.cursor.set {
		b = appendSpan(b, w.cursor.span)
		b = kv.AppendBlob(b, w.cursor.group)
	}
	return b
}

func appendSpan(b []byte, s Span) []byte {
	return kv.AppendVarint(kv.AppendVarint(b, int64(s.End)), int64(s.Start))
}

func readSpan(d *kv.Decoder) (s Span) {
	s.End = watermark.Time(d.Varint())
	s.Start = watermark.Time(d.Varint())
	return s
}

// Load reads what Save wrote. The error names the record and wraps
// kv.ErrCorrupt or agg.ErrState.
func (w *Window) Load(r kv.Reader) error {
	data, err := r.Get([]byte{progressTable})
	if err != nil {
		return err
	}
	if data != nil {
		if err := w.loadProgress(data); err != nil {
			return fmt.Errorf("record of the progress: %w", err)
		}
	}
	load := w.loadGroup
	if w.bounded() {
		load = w.loadAway
	}
	if err := scanTable(r, groupTable, load); err != nil {
		return err
	}
	if err := scanTable(r, revisionTag, w.loadRevision); err != nil {
		return err
	}
	if err := scanTable(r, alarmTable, w.loadAlarm); err != nil {
		return err
	}
	return scanTable(r, fillTable, w.loadFilling)
}

func scanTable(r kv.Reader, table byte, load func(key, value []byte) error) error {
	from := []byte{table}
	return r.Scan(from, kv.PrefixEnd(from), func(key, value []byte) error {
		if err := load(key, value); err != nil {
			return fmt.Errorf("record %.80q: %w", key, err)
		}
		return nil
	})
}

func (w *Window) loadProgress(data []byte) error {
	version, payload, err := kv.Record(data)
	if err != nil {
		return err
	}
	if version < 1 || version > progressVersion {
		return unknownVersion(version, progressVersion)
	}
	d := kv.NewDecoder(payload)
	w.reached = watermark.Time(d.Varint())
	if version > 1 {
		w.emitted = readSpan(d)
	}
	if w.cursor.set = d.Bool(); w.cursor.set {
		w.cursor.span = readSpan(d)
		w.cursor.group = bytes.Clone(d.Bytes())
	}
	return d.Done()
}

// loadGroup restores one group of a slice.
func (w *Window) loadGroup(key, value []byte) error {
	s, name, err := w.loadSlice(key)
	if err != nil {
		return err
	}
	accumulators, err := w.decode(value)
	if err != nil {
		return err
	}
	number, _ := w.state.place(s, name, hashKey(name))
	s.set(number, accumulators)
	return nil
}

// decode reads the accumulators of a group.
func (w *Window) decode(value []byte) ([]agg.Accumulator, error) {
	d, err := openWindowRecord(value)
	if err != nil {
		return nil, err
	}
	rest := d.Rest()
	accumulators := make([]agg.Accumulator, len(w.config.Aggregates))
	for i, a := range w.config.Aggregates {
		accumulators[i], rest, err = a.Call.Function.Decode(a.Call, rest)
		if err != nil {
			return nil, fmt.Errorf("aggregate %q: %w", a.Name, err)
		}
	}
	return accumulators, kv.NewDecoder(rest).Done()
}

func (w *Window) isSlice(s Span) bool {
	return s.Start >= watermark.Min && s.Start <= watermark.Max && w.config.Assigner.Slice(s.Start) == s
}

// isWindow looks for a window among those of its first slice that end when it
// does: more than one where they are cut at the end of time.
func (w *Window) isWindow(s Span) bool {
	if s.Start < watermark.Min || s.Start >= s.End {
		return false
	}
	first, after := w.config.Assigner.Slice(s.Start), endedBy(s.End-1)
	for {
		window, ok := w.config.Assigner.Next(first, after)
		if !ok || window.End != s.End || window == s {
			return window == s
		}
		after = window
	}
}

// strangeSpan says that a stored span is none of these windows. Where days begin is
// also decided by rules that come from elsewhere.
func (w *Window) strangeSpan(what string, s Span) error {
	cause := ""
	for _, setting := range w.config.Assigner.Settings() {
		if setting.Field == "timezone" && setting.Value != "UTC" {
			cause = fmt.Sprintf("; if the state was written under other rules of time zone %q, let it run with the time zone database of that time until these windows are through, or give the operator a new name", setting.Value)
		}
	}
	return fmt.Errorf("%s to %s is not %s of these windows%s: %w", s.Start, s.End, what, cause, kv.ErrCorrupt)
}

// checkGroup says whether the key can be one of this operator.
func (w *Window) checkGroup(name []byte) error {
	values := 0
	for ; len(name) > 0; values++ {
		var err error
		if _, name, err = agg.DecodeKey(name); err != nil {
			return err
		}
	}
	if values != len(w.config.GroupBy) {
		return fmt.Errorf("a group of %d values, not %d: %w", values, len(w.config.GroupBy), kv.ErrCorrupt)
	}
	return nil
}

func splitGroupKey(key []byte) (span Span, group []byte, err error) {
	span.End, group, err = kv.Time[watermark.Time](key[1:])
	if err == nil {
		span.Start, group, err = kv.Time[watermark.Time](group)
	}
	return span, group, err
}

func openWindowRecord(data []byte) (*kv.Decoder, error) {
	version, payload, err := kv.Record(data)
	if err != nil {
		return nil, err
	}
	if version != windowVersion {
		return nil, unknownVersion(version, windowVersion)
	}
	return kv.NewDecoder(payload), nil
}

func unknownVersion(version, ours byte) error {
	return fmt.Errorf("version %d, this build reads %d: %w", version, ours, kv.ErrCorrupt)
}
