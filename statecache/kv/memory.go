package kv

import (
	"errors"
	"unsafe"

	"github.com/connect-windowed/connect-windowed/statecache/internal/ordered"
)

// ErrClosed is returned by every call on a closed store.
var ErrClosed = errors.New("the store is closed")

// NewMemory returns an empty Store without a file: for `state: memory`, for
// `connect-windowed test` and for tests. Commit is never an error while it is
// open.
func NewMemory() Store { return &memory{index: map[string]*entry{}} }

// memory keeps a copy of every key and value of its own, so that a key that
// stays does not pin the batch it came in. Both maps hold the same entries:
// a hash look-up is several times faster than a search at a million keys, and
// most of what operators write is there already.
type memory struct {
	index  map[string]*entry
	order  ordered.Map[*entry]
	closed bool
}

type entry struct{ value []byte }

func (m *memory) Get(key []byte) ([]byte, error) {
	if m.closed {
		return nil, ErrClosed
	}
	e := m.index[string(key)]
	if e == nil {
		return nil, nil
	}
	return append(make([]byte, 0, len(e.value)), e.value...), nil
}

func (m *memory) Scan(from, to []byte, visit func(key, value []byte) error) error {
	if m.closed {
		return ErrClosed
	}
	end := view(to)
	for c := m.order.Seek(view(from)); c.Valid() && (end == "" || c.Key() < end); c.Next() {
		key := unsafe.Slice(unsafe.StringData(c.Key()), len(c.Key()))
		if err := visit(key, (*c.Value()).value); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Commit(b *Batch) error {
	if m.closed {
		return ErrClosed
	}
	return ReadBatch(b.Bytes(), m.put, m.del)
}

// put overwrites a value in place where it fits without waste: counters that
// change in every batch then cost no allocation.
func (m *memory) put(key, value []byte) {
	e := m.index[string(key)]
	if e == nil {
		own := string(key)
		e = &entry{}
		m.index[own] = e
		m.order.Set(own, e)
	}
	if len(value) > cap(e.value) || len(value) < cap(e.value)/2 {
		e.value = make([]byte, 0, len(value))
	}
	e.value = append(e.value[:0], value...)
}

func (m *memory) del(from, to []byte) {
	end := view(to)
	for c := m.order.Seek(view(from)); c.Valid() && (end == "" || c.Key() < end); c.Next() {
		delete(m.index, c.Key())
	}
	m.order.DeleteRange(view(from), end)
}

func (m *memory) Close() error {
	m.closed = true
	m.index, m.order = nil, ordered.Map[*entry]{}
	return nil
}

// view is the bytes as a string for the length of one call, without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
