// Package kvtest has a kv.Store that fails on demand, for tests of code that
// must survive a full disk.
package kvtest

import (
	"errors"
	"sync"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// ErrInjected is what an injected failure returns; errors.Is finds it.
var ErrInjected = errors.New("injected failure of the store")

// Counters say what was asked of a Store so far.
type Counters struct {
	Commits, Failed int   // commits that succeeded, that were made to fail
	Gets, Scans     int   // reads
	Ops, Bytes      int64 // operations and bytes of the successful commits
}

// Store wraps a kv.Store. It is safe for concurrent use as far as the wrapped
// store is; its own knobs and counters may be used from any goroutine.
type Store struct {
	kv.Store

	// mu protects all below.
	mu       sync.Mutex
	before   int // commits that fail without having been applied
	after    int // commits that are applied and fail all the same
	hook     func(*kv.Batch) error
	counters Counters
}

// Wrap puts a Store around s. Close closes s.
func Wrap(s kv.Store) *Store { return &Store{Store: s} }

// Memory wraps an empty in-memory store.
func Memory() *Store { return Wrap(kv.NewMemory()) }

// FailNext makes the next n commits return ErrInjected with nothing applied.
func (s *Store) FailNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = n
}

// FailAfterNext makes the next n commits return ErrInjected although they were
// applied: a disk that failed after the last byte. A retry must do no harm.
func (s *Store) FailAfterNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = n
}

// OnCommit sets a function that is called, outside every lock, with each
// batch before it is applied; an error of it fails the commit. It may block,
// to hold a commit back, and may read the batch but not keep it.
func (s *Store) OnCommit(hook func(*kv.Batch) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// Counters returns the counts so far.
func (s *Store) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters
}

// Get reads through to the wrapped store.
func (s *Store) Get(key []byte) ([]byte, error) {
	s.count(func(c *Counters) { c.Gets++ })
	return s.Store.Get(key)
}

// Scan reads through to the wrapped store.
func (s *Store) Scan(from, to []byte, visit func(key, value []byte) error) error {
	s.count(func(c *Counters) { c.Scans++ })
	return s.Store.Scan(from, to, visit)
}

// Commit applies the batch unless it is made to fail.
func (s *Store) Commit(b *kv.Batch) error {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	if hook != nil {
		if err := hook(b); err != nil {
			s.count(func(c *Counters) { c.Failed++ })
			return err
		}
	}
	before, after := s.draw()
	if before {
		return ErrInjected
	}
	if err := s.Store.Commit(b); err != nil {
		return err
	}
	if after {
		s.count(func(c *Counters) { c.Failed++ })
		return ErrInjected
	}
	s.count(func(c *Counters) {
		c.Commits++
		c.Ops += int64(b.Len())
		c.Bytes += int64(b.Size())
	})
	return nil
}

// draw takes one failure from the budgets.
func (s *Store) draw() (before, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.before > 0:
		s.before--
		s.counters.Failed++
		return true, false
	case s.after > 0:
		s.after--
		return false, true
	}
	return false, false
}

func (s *Store) count(change func(*Counters)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.counters)
}
