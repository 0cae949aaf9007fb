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
//	p                          progress: the close that was reached, and the cursor
//	g <end> <start> <group>    the accumulators of a group, in the order of their names
//
// Instants are order-preserving, the group is canonical and ends the key: what a
// slice holds is one range, and slices stand in the order in which they close.
const (
	progressTable = 'p'
	groupTable    = 'g'
	windowVersion = 1
)

// Save writes the groups that changed, deletes the slices that are through and
// notes how far Advance came.
func (w *Window) Save(out kv.Writer) {
	for _, span := range w.state.dropped {
		from := appendSliceKey(w.key[:0], span)
		out.Delete(from, kv.PrefixEnd(from))
	}
	w.state.dropped = w.state.dropped[:0]
	for _, s := range w.state.dirty {
		w.saveSlice(out, s)
	}
	clear(w.state.dirty)
	w.state.dirty = w.state.dirty[:0]
	if w.progress {
		out.Put([]byte{progressTable}, w.framed(w.appendProgress(w.payload[:0])))
		w.progress = false
	}
}

func (w *Window) saveSlice(out kv.Writer, s *timeSlice) {
	w.key = appendSliceKey(w.key[:0], s.span)
	prefix := len(w.key)
	for _, number := range s.changed {
		if !s.dirty[number] {
			continue
		}
		payload := w.payload[:0]
		for _, acc := range s.of(number) {
			payload = acc.Append(payload)
		}
		w.key = append(w.key[:prefix], s.groups.key(number)...)
		out.Put(w.key, w.framed(payload))
		s.dirty[number], s.saved = false, true
	}
	s.changed = s.changed[:0]
}

// framed makes a record of a payload, both in memory that is used again.
func (w *Window) framed(payload []byte) []byte {
	w.payload = payload
	w.record = kv.AppendRecord(w.record[:0], windowVersion, payload)
	return w.record
}

func appendSliceKey(b []byte, s Span) []byte {
	return kv.AppendTime(kv.AppendTime(append(b, groupTable), s.End), s.Start)
}

func (w *Window) appendProgress(b []byte) []byte {
	b = kv.AppendVarint(b, int64(w.reached))
	b = kv.AppendBool(b, w.cursor.set)
	if w.cursor.set {
		b = kv.AppendVarint(b, int64(w.cursor.span.End))
		b = kv.AppendVarint(b, int64(w.cursor.span.Start))
		b = kv.AppendBlob(b, w.cursor.group)
	}
	return b
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
	from := []byte{groupTable}
	return r.Scan(from, kv.PrefixEnd(from), func(key, value []byte) error {
		if err := w.loadGroup(key, value); err != nil {
			return fmt.Errorf("record %.80q: %w", key, err)
		}
		return nil
	})
}

func (w *Window) loadProgress(data []byte) error {
	d, err := openWindowRecord(data)
	if err != nil {
		return err
	}
	w.reached = watermark.Time(d.Varint())
	if w.cursor.set = d.Bool(); w.cursor.set {
		w.cursor.span.End = watermark.Time(d.Varint())
		w.cursor.span.Start = watermark.Time(d.Varint())
		w.cursor.group = bytes.Clone(d.Bytes())
	}
	return d.Done()
}

// loadGroup restores one group, unless it was handed out before the restart.
func (w *Window) loadGroup(key, value []byte) error {
	span, name, err := splitGroupKey(key)
	if err != nil {
		return err
	}
	if err := w.checkGroup(span, name); err != nil {
		return err
	}
	accumulators, err := w.decode(value)
	if err != nil {
		return err
	}
	s := w.state.open(span)
	s.saved = true
	if w.cursor.set && span == w.cursor.span && bytes.Compare(name, w.cursor.group) <= 0 {
		return nil
	}
	number, _ := w.state.place(s, name)
	copy(s.of(number), accumulators)
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

// checkGroup says whether the record can be one of this operator.
func (w *Window) checkGroup(span Span, name []byte) error {
	if span.Start < watermark.Min || span.Start > watermark.Max || w.config.Assigner.Slice(span.Start) != span {
		return fmt.Errorf("%s to %s is not a slice of these windows: %w", span.Start, span.End, kv.ErrCorrupt)
	}
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
		return nil, fmt.Errorf("version %d, this build reads %d: %w", version, windowVersion, kv.ErrCorrupt)
	}
	return kv.NewDecoder(payload), nil
}
