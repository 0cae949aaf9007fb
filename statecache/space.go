package statecache

import (
	"fmt"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// DefaultGenerationBytes is the size of the log at which it begins to fold
// into the base. The log of a Space takes about twice this in memory, plus up to
// twice as much again for its indexes, more than half of that only after a scan. Where
// new keys come all over a base of many millions, each on a page of its own, folding
// takes longer than filling, and the log grows: to 330 MB after 20 million keys.
const DefaultGenerationBytes = 32 << 20

// Space is the state under one name in a File: a kv.Store for one owner.
//
// Get and Scan may overlap each other and a Commit. A read sees every Commit that
// had returned before it began, and of one that runs all or nothing for each key:
// keys that the Commit does not touch are what they were. Commits must not overlap
// each other: the second one returns ErrBusy. Different Spaces are independent.
type Space struct {
	*handle
	name       string
	generation int  // bytes of the log at which it begins to fold
	tight      bool // see Bound

	mu    sync.Mutex // protects state, for reads during a Commit; Commit alone changes it
	state spaceState

	writing atomic.Bool // a Commit runs
	closed  atomic.Bool
}

// Lease takes the Space of that name, which need not exist yet, and reads its
// log. A name has one owner in a process: the error wraps ErrLeased, ErrName,
// ErrDamaged or ErrClosed. Nothing is written before the first Commit.
func (f *File) Lease(name string) (*Space, error) {
	if f.closed.Load() {
		return nil, ErrClosed
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := f.retain(); err != nil {
		return nil, err
	}
	s := &Space{handle: f.handle, name: name, generation: f.opts.GenerationBytes}
	if err := s.begin(); err != nil {
		_ = s.release()
		return nil, err
	}
	return s, nil
}

// begin takes the name and reads its log.
func (s *Space) begin() error {
	if !s.take(s.name) {
		return fmt.Errorf("%w: the name %q in %q belongs to another component of this process. Give each its own name, or its own file", ErrLeased, s.name, s.path)
	}
	if err := s.load(); err != nil {
		s.give(s.name)
		return fmt.Errorf("state %q: %w", s.name, err)
	}
	return nil
}

const maxName = 256

func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("%w: it has %d bytes, 1 to %d are allowed (%.40q)", ErrName, len(name), maxName, name)
	}
	return nil
}

func (h *handle) take(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leases[name] {
		return false
	}
	h.leases[name] = true
	return true
}

func (h *handle) give(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.leases, name)
}

// Names lists the Spaces that have state in the file, in order.
func (f *File) Names() (names []string, err error) {
	if f.closed.Load() {
		return nil, ErrClosed
	}
	err = f.view(place{what: "listing its states"}, func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketSpaces)
		if b == nil {
			return nil
		}
		return b.ForEachBucket(func(name []byte) error {
			names = append(names, string(name))
			return nil
		})
	})
	return names, err
}

// Bound keeps the memory that the log takes near bytes, less than the file's
// GenerationBytes would allow: each Commit then folds as many pages as it writes.
// It is called before the first Commit.
func (s *Space) Bound(bytes int) {
	s.generation, s.tight = min(s.generation, max(bytes/logShare, leastGeneration)), true
}

// A log takes both of its generations in memory, and an index of about the same
// size.
const (
	logShare        = 4
	leastGeneration = 64 << 10
)

// Get implements kv.Reader.
func (s *Space) Get(key []byte) (value []byte, err error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	for _, g := range state.generations() {
		if v, found := g.get(key); found {
			return v, nil
		}
	}
	err = s.viewBase("reading state", func(b *bolt.Bucket) error {
		v, err := lookup(b, key)
		if v != nil && err == nil {
			value = clone(v)
		}
		return err
	})
	return value, err
}

// Scan implements kv.Reader. It reads the file in pieces and holds no
// transaction while visit runs.
func (s *Space) Scan(from, to []byte, visit func(key, value []byte) error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.scan(from, to, visit)
}

// Commit implements kv.Store: the batch is on disk when it returns nil. It
// writes the batch and a bounded part of the fold. After an error nothing has
// changed in memory, and the same batch or another may be tried again, except
// after ErrDamaged: then the file takes no more writes.
func (s *Space) Commit(b *kv.Batch) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if !s.writing.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: Commit to %q during another one", ErrBusy, s.name)
	}
	defer s.writing.Store(false)
	switch {
	case b.Len() == 0:
		return nil
	case b.Size() > maxBatch:
		return fmt.Errorf("commit to state %q: the batch has %d bytes, at most %d are allowed. Write less at once", s.name, b.Size(), maxBatch)
	}
	record := kv.AppendRecord(make([]byte, 0, b.Size()+recordFrame), logVersion, b.Bytes())
	var next spaceState
	err := s.update(place{"committing to state", s.name}, func(tx *bolt.Tx) (err error) {
		next, err = s.write(tx, record)
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.state = next
	next.active.bytes += len(record)
	s.mu.Unlock()
	return next.active.take(record[1 : 1+b.Size()])
}

// Close gives the name back. A second Close does nothing.
func (s *Space) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.give(s.name)
	return s.release()
}

// Stats says how a Space is doing; for metrics.
type Stats struct {
	LogBytes int  // of both generations, in memory and on disk
	LogKeys  int  // keys and deleted ranges of both generations
	Folding  bool // a frozen generation is on its way into the base
}

// Folding says whether a part of the log is on its way into the base.
func (s *Space) Folding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.frozen != nil
}

// Stats says how the Space is doing.
func (s *Space) Stats() (st Stats) {
	if s.closed.Load() {
		return st
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.state.generations() {
		st.LogBytes += g.bytes
		st.LogKeys += g.index.count()
	}
	st.Folding = s.state.frozen != nil
	return st
}

// viewBase reads the base; where there is none, read does not run.
func (s *Space) viewBase(what string, read func(b *bolt.Bucket) error) error {
	return s.view(place{what, s.name}, func(tx *bolt.Tx) error {
		if b := s.bucket(tx); b != nil {
			if b = b.Bucket(bucketBase); b != nil {
				return read(b)
			}
		}
		return nil
	})
}

// bucket is the Space's own bucket, nil where nothing was written yet.
func (s *Space) bucket(tx *bolt.Tx) *bolt.Bucket {
	if b := tx.Bucket(bucketSpaces); b != nil {
		return b.Bucket([]byte(s.name))
	}
	return nil
}

// clone copies, and an empty value stays different from none.
func clone(v []byte) []byte { return append(make([]byte, 0, len(v)), v...) }
