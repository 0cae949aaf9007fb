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
func NewMemory() Store { return &memory{} }

// memory keeps a copy of every key and value of its own, so that a key that
// stays does not pin the batch it came in.
type memory struct {
	entries ordered.Map[[]byte]
	closed  bool
}

func (m *memory) Get(key []byte) ([]byte, error) {
	if m.closed {
		return nil, ErrClosed
	}
	v := m.entries.At(view(key))
	if v == nil {
		return nil, nil
	}
	return append(make([]byte, 0, len(*v)), *v...), nil
}

func (m *memory) Scan(from, to []byte, visit func(key, value []byte) error) error {
	if m.closed {
		return ErrClosed
	}
	end := view(to)
	for c := m.entries.Seek(view(from)); c.Valid() && (end == "" || c.Key() < end); c.Next() {
		if err := visit(unsafe.Slice(unsafe.StringData(c.Key()), len(c.Key())), *c.Value()); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Commit(b *Batch) error {
	if m.closed {
		return ErrClosed
	}
	return ReadBatch(b.Bytes(), m.put, func(from, to []byte) {
		m.entries.DeleteRange(view(from), view(to))
	})
}

// put overwrites a value in place where it fits without waste: counters that
// change in every batch then cost no allocation.
func (m *memory) put(key, value []byte) {
	v := m.entries.At(view(key))
	switch {
	case v == nil:
		m.entries.Set(string(key), append(make([]byte, 0, len(value)), value...))
	case len(value) <= cap(*v) && len(value) >= cap(*v)/2:
		*v = append((*v)[:0], value...)
	default:
		*v = append(make([]byte, 0, len(value)), value...)
	}
}

func (m *memory) Close() error {
	m.closed = true
	m.entries = ordered.Map[[]byte]{}
	return nil
}

// view is the bytes as a string for the length of one call, without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
