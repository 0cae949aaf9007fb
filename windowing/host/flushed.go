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
//
// In memory are numbers only: a flush may put out everything that the state holds.
// What is needed to take a row back is read from the store then.
type flushed struct {
	edge     Edge
	revising map[string]bool        // by operator
	rows     map[string]flushedRow  // by row key
	dirty    map[string]flushedBody // what changed since the last save, with what is stored beside it
}

// flushedRow is what is compared.
type flushedRow struct {
	revision int64
	hash     uint64
	closed   bool // it came out at its ordinary close too
	deleted  bool // it was taken back; it may come again
	seen     bool // the flush of this run has put it out
}

// flushedBody is what a delete row is made of. A row that came out at its ordinary
// close is not taken back and needs none.
type flushedBody struct {
	mark    windowing.Mark
	message []byte // as Edge.Append wrote it
}

func newFlushed(edge Edge, stages []windowing.Stage) *flushed {
	f := &flushed{edge: edge, revising: map[string]bool{}, rows: map[string]flushedRow{}, dirty: map[string]flushedBody{}}
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
	hash, deleted := f.hash(row), m.Timing == windowing.Deleted
	same := known && old.deleted == deleted && (deleted || old.hash == hash)
	if known && !same {
		m.Revision = max(old.revision+1, m.Revision)
		if !deleted {
			m.Timing = windowing.AfterEnd
		}
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
		f.rows[m.RowKey] = flushedRow{revision: m.Revision, hash: hash, closed: closed, deleted: deleted, seen: true}
	}
	f.dirty[m.RowKey] = flushedBody{}
	return !same
}

// keep remembers the message of a row that a flush puts out, as it leaves.
func (f *flushed) keep(m *windowing.Mark, msg windowing.Message) {
	if m == nil {
		return
	}
	if _, ok := f.dirty[m.RowKey]; ok {
		f.dirty[m.RowKey] = flushedBody{mark: *m, message: f.edge.Append(nil, msg)}
	}
}

// stale takes back the rows of earlier flushes that do not hold any more, in the
// order of their keys, once this run's flush is over and in the store. A row that
// may come again, because its window ends after w, keeps its number.
func (f *flushed) stale(r kv.Reader, w watermark.Time) (rows []windowing.Row, err error) {
	for _, key := range slices.Sorted(maps.Keys(f.rows)) {
		old := f.rows[key]
		if old.seen || old.closed {
			continue
		}
		body, err := f.read(r, key)
		if err != nil {
			return nil, err
		}
		again := body.mark.Spanned && body.mark.End > w
		if old.deleted && again {
			continue
		}
		delete(f.rows, key)
		f.dirty[key] = flushedBody{}
		if old.deleted {
			continue
		}
		msg, err := f.edge.Decode(body.message)
		if err != nil {
			return nil, fmt.Errorf("flushed row %s: %w", key, err)
		}
		mark := body.mark
		mark.RowKey, mark.Revision, mark.Timing = key, old.revision+1, windowing.Deleted
		rows = append(rows, windowing.Row{Entry: -1, Time: mark.EventTime, Message: msg, Mark: &mark})
		if again {
			f.rows[key] = flushedRow{revision: mark.Revision, deleted: true}
			f.dirty[key] = flushedBody{mark: body.mark}
		}
	}
	return rows, nil
}

// holds says that rows of earlier flushes may have to be taken back.
func (f *flushed) holds() bool {
	for _, row := range f.rows {
		if !row.seen && !row.closed {
			return true
		}
	}
	return false
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
	for key, body := range f.dirty {
		row, ok := f.rows[key]
		if !ok {
			drop(w, []byte(key))
			continue
		}
		b := kv.AppendUint64(kv.AppendVarint(nil, row.revision), row.hash)
		put(w, []byte(key), body.append(kv.AppendBool(kv.AppendBool(b, row.closed), row.deleted)))
	}
	clear(f.dirty)
}

func (f *flushed) load(r kv.Reader) error {
	return r.Scan(nil, nil, func(key, value []byte) error {
		row, _, err := readFlushed(value)
		if err != nil {
			return fmt.Errorf("flushed row %s: %w", key, err)
		}
		f.rows[string(key)] = row
		return nil
	})
}

// read gives what is stored beside a row.
func (f *flushed) read(r kv.Reader, key string) (body flushedBody, err error) {
	value, err := r.Get([]byte(key))
	if err == nil {
		_, body, err = readFlushed(value)
	}
	if err != nil {
		return body, fmt.Errorf("flushed row %s: %w", key, err)
	}
	return body, nil
}

func readFlushed(value []byte) (row flushedRow, body flushedBody, err error) {
	payload, err := open(value)
	if err != nil {
		return row, body, err
	}
	d := kv.NewDecoder(payload)
	row.revision, row.hash = d.Varint(), d.Fixed64()
	row.closed, row.deleted = d.Bool(), d.Bool()
	body.read(d)
	return row, body, d.Done()
}

func (f *flushedBody) append(b []byte) []byte {
	b = kv.AppendBool(b, f.mark.Spanned)
	for _, t := range []watermark.Time{f.mark.Start, f.mark.End, f.mark.EventTime, f.mark.Watermark} {
		b = kv.AppendVarint(b, int64(t))
	}
	return kv.AppendBlob(kv.AppendBlob(b, f.mark.Operator), f.message)
}

// read takes a body from a decoder; its message aliases the record.
func (f *flushedBody) read(d *kv.Decoder) {
	f.mark.Spanned = d.Bool()
	for _, t := range []*watermark.Time{&f.mark.Start, &f.mark.End, &f.mark.EventTime, &f.mark.Watermark} {
		*t = watermark.Time(d.Varint())
	}
	f.mark.Operator = d.String()
	f.message = d.Bytes()
}
