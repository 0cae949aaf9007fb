package statecache

import (
	"bytes"

	"github.com/connect-windowed/connect-windowed/statecache/internal/ordered"
)

// merge is a scan over the tables, newest first, and the base below them. It
// holds one entry of each layer; the newest layer that has the smallest key
// decides about it.
type merge struct {
	tables  []*table
	cursors []ordered.Cursor[[]byte]
	base    *baseScan
	end     string
}

// scan visits what is visible in [from, to) in order.
func (s *Space) scan(from, to []byte, visit func(key, value []byte) error) error {
	l, err := s.layers()
	if err != nil {
		return err
	}
	defer l.release()
	m := merge{tables: l.tables, base: s.scanBase(from, to), end: text(to)}
	for _, t := range m.tables {
		m.cursors = append(m.cursors, t.puts.Seek(text(from)))
	}
	for {
		key, value, at, err := m.smallest()
		if err != nil || at < 0 {
			return err
		}
		if !m.hidden(key, at) {
			if err := visit(key, value); err != nil {
				return err
			}
		}
		m.pass(key)
	}
}

// smallest returns the smallest key of all layers with the newest value of it,
// and the layer, len(tables) being the base; -1 at the end.
func (m *merge) smallest() (key, value []byte, at int, err error) {
	e, err := m.base.peek()
	if err != nil {
		return nil, nil, -1, err
	}
	at = -1
	if e != nil {
		key, value, at = e.key, e.value, len(m.tables)
	}
	for i := len(m.tables) - 1; i >= 0; i-- {
		c := &m.cursors[i]
		if c.Valid() && before(c.Key(), m.end) && (at < 0 || c.Key() <= text(key)) {
			key, value, at = raw(c.Key()), *c.Value(), i
		}
	}
	return key, value, at, nil
}

// hidden says whether a layer above deleted the key. A deleted range is left
// out of the base as a whole: a window that was just closed may hold most of
// it, and is folded only in time.
func (m *merge) hidden(key []byte, at int) bool {
	for _, t := range m.tables[:at] {
		if to, ok := t.deleted.covers(text(key)); ok {
			if at == len(m.tables) {
				m.base.skipTo(raw(to))
			}
			return true
		}
	}
	return false
}

// pass moves every layer beyond key. A base that skipped is beyond already.
func (m *merge) pass(key []byte) {
	for i := range m.cursors {
		if c := &m.cursors[i]; c.Valid() && c.Key() == text(key) {
			c.Next()
		}
	}
	if b := m.base; b.i < len(b.piece) && bytes.Equal(b.piece[b.i].key, key) {
		b.i++
	}
}
