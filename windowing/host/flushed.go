package host

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// flushed remembers the rows that an end of the input put out before their time,
// so that they come out again only where their value has changed since.
//
// A row is forgotten at its ordinary close, unless its operator may revise it: then
// its number stays, so that revisions go on from it. A row that the next end of the
// input does not put out again, although it was never closed, no longer holds: its
// session has other bounds, or it has found its partner. It is taken back by a
// delete row.
type flushed struct {
	edge     Edge
	revising map[string]bool       // by operator
	rows     map[string]flushedRow // by row key
	dirty    map[string]struct{}
}

type flushedRow struct {
	revision int64
	hash     uint64
	closed   bool // it came out at its ordinary close too
	deleted  bool // it was taken back; its window is open and may bring it again
	seen     bool // the flush of this run has put it out
	mark     windowing.Mark
	message  []byte // as Edge.Append wrote it
}

func newFlushed(edge Edge, stages []windowing.Stage) *flushed {
	f := &flushed{edge: edge, revising: map[string]bool{}, rows: map[string]flushedRow{}, dirty: map[string]struct{}{}}
	for i := range stages {
		f.revising[stages[i].Name] = stages[i].Revises
	}
	return f
}

// pass judges a row at the exit of the chain: whether it comes out, and as which
// revision. flush says that it comes out before its time.
func (f *flushed) pass(row *windowing.Row, flush bool) bool {
	m := row.Mark
	if m == nil || m.RowKey == "" || !flush && len(f.rows) == 0 {
		return true
	}
	old, known := f.rows[m.RowKey]
	if !known && !flush {
		return true
	}
	hash := f.hash(row)
	same := known && old.hash == hash && !old.deleted
	if known && !same {
		m.Revision, m.Timing = max(old.revision+1, m.Revision), windowing.AfterEnd
	}
	closed := old.closed || !flush
	switch {
	case !flush && !f.revising[m.Operator]:
		delete(f.rows, m.RowKey)
	case same && closed == old.closed:
		old.seen = true
		f.rows[m.RowKey] = old
		return false
	case same:
		old.seen, old.closed = true, true
		f.rows[m.RowKey] = old
	default:
		f.rows[m.RowKey] = flushedRow{revision: m.Revision, hash: hash, closed: closed, seen: true, mark: *m, message: old.message}
	}
	f.dirty[m.RowKey] = struct{}{}
	return !same
}

// keep remembers the message of a row that a flush puts out, as it leaves.
func (f *flushed) keep(m *windowing.Mark, msg windowing.Message) {
	if m == nil {
		return
	}
	if row, ok := f.rows[m.RowKey]; ok {
		row.message = f.edge.Append(nil, msg)
		f.rows[m.RowKey] = row
	}
}

// stale takes back the rows of earlier flushes that do not hold any more, in the
// order of their keys, once this run's flush is over. A row that may come again,
// because its window ends after w, keeps its number.
func (f *flushed) stale(w watermark.Time) (rows []windowing.Row, err error) {
	for _, key := range slices.Sorted(maps.Keys(f.rows)) {
		old := f.rows[key]
		again := old.mark.Spanned && old.mark.End > w
		if old.seen || old.closed || old.deleted && again {
			continue
		}
		f.dirty[key] = struct{}{}
		if old.deleted {
			delete(f.rows, key)
			continue
		}
		msg, err := f.edge.Decode(old.message)
		if err != nil {
			return nil, fmt.Errorf("flushed row %s: %w", key, err)
		}
		mark := old.mark
		mark.RowKey, mark.Revision, mark.Timing = key, old.revision+1, windowing.Deleted
		rows = append(rows, windowing.Row{Entry: -1, Time: mark.EventTime, Message: msg, Mark: &mark})
		if delete(f.rows, key); again {
			f.rows[key] = flushedRow{revision: mark.Revision, deleted: true, mark: old.mark}
		}
	}
	return rows, nil
}

func (f *flushed) hash(row *windowing.Row) uint64 {
	h := fnv.New64a()
	h.Write(f.edge.Body(row.Message))
	if row.Err != nil {
		h.Write([]byte(row.Err.Error()))
	}
	return h.Sum64()
}

func (f *flushed) save(w kv.Writer) {
	for key := range f.dirty {
		if row, ok := f.rows[key]; ok {
			put(w, []byte(key), row.append(nil))
			continue
		}
		drop(w, []byte(key))
	}
	clear(f.dirty)
}

func (f *flushed) load(r kv.Reader) error {
	return r.Scan(nil, nil, func(key, value []byte) error {
		payload, err := open(value)
		if err != nil {
			return fmt.Errorf("flushed row %s: %w", key, err)
		}
		d := kv.NewDecoder(payload)
		f.rows[string(key)] = readFlushed(d)
		if err := d.Done(); err != nil {
			return fmt.Errorf("flushed row %s: %w", key, err)
		}
		return nil
	})
}

func (r *flushedRow) append(b []byte) []byte {
	b = kv.AppendUint64(kv.AppendVarint(b, r.revision), r.hash)
	b = kv.AppendBool(kv.AppendBool(kv.AppendBool(b, r.closed), r.deleted), r.mark.Spanned)
	for _, t := range []watermark.Time{r.mark.Start, r.mark.End, r.mark.EventTime, r.mark.Watermark} {
		b = kv.AppendVarint(b, int64(t))
	}
	return kv.AppendBlob(kv.AppendBlob(b, r.mark.Operator), r.message)
}

func readFlushed(d *kv.Decoder) (r flushedRow) {
	r.revision, r.hash = d.Varint(), d.Fixed64()
	r.closed, r.deleted, r.mark.Spanned = d.Bool(), d.Bool(), d.Bool()
	for _, t := range []*watermark.Time{&r.mark.Start, &r.mark.End, &r.mark.EventTime, &r.mark.Watermark} {
		*t = watermark.Time(d.Varint())
	}
	r.mark.Operator = d.String()
	r.message = slices.Clone(d.Bytes())
	return r
}
