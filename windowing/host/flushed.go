package host

import (
	"fmt"
	"hash/fnv"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// flushed remembers the rows that an end of the input put out before their time,
// so that they come out again only where their value has changed since.
//
// A row is forgotten at its ordinary close, unless its operator may revise it: then
// its number stays, so that revisions go on from it.
type flushed struct {
	edge     Edge
	revising map[string]bool       // by operator
	rows     map[string]flushedRow // by row key
	dirty    map[string]struct{}
}

type flushedRow struct {
	revision int64
	hash     uint64
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
	same := known && old.hash == hash
	if known && !same {
		m.Revision, m.Timing = max(old.revision+1, m.Revision), windowing.AfterEnd
	}
	switch {
	case !flush && !f.revising[m.Operator]:
		delete(f.rows, m.RowKey)
	case same:
		return false
	default:
		f.rows[m.RowKey] = flushedRow{revision: m.Revision, hash: hash}
	}
	f.dirty[m.RowKey] = struct{}{}
	return !same
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
			b := kv.AppendVarint(nil, row.revision)
			put(w, []byte(key), kv.AppendUint64(b, row.hash))
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
		f.rows[string(key)] = flushedRow{revision: d.Varint(), hash: d.Fixed64()}
		if err := d.Done(); err != nil {
			return fmt.Errorf("flushed row %s: %w", key, err)
		}
		return nil
	})
}
