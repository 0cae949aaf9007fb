package statecache

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// write is one change that waits for a transaction. It may be applied more
// than once (a transaction that failed is run again without its neighbours),
// so apply changes nothing but the transaction and variables of its own, which
// it sets anew each time.
type write struct {
	apply func(tx *bolt.Tx) error
	done  bool
	err   error
}

// failure is what tests make of a transaction: it fails without, or with, its
// changes in the file.
type failure struct{ before, after error }

// update makes apply durable. Writes that wait while a transaction runs go
// into the next one together: a sync costs the same for one and for many.
// Nobody waits on purpose, so a write alone is as fast as the disk.
func (h *handle) update(where place, apply func(tx *bolt.Tx) error) error {
	w := &write{apply: apply}
	h.mu.Lock()
	h.queue = append(h.queue, w)
	h.mu.Unlock()

	h.writing.Lock()
	defer h.writing.Unlock()
	if !w.done {
		h.mu.Lock()
		group := h.queue
		h.queue = nil
		h.mu.Unlock()
		h.run(where, group)
	}
	return w.err
}

// run applies a group in one transaction. Where that fails, each is tried
// alone, so that none fails for another's sake.
func (h *handle) run(where place, group []*write) {
	err := h.transact(where, group)
	if err != nil && len(group) > 1 {
		for _, w := range group {
			w.err, w.done = h.transact(where, []*write{w}), true
		}
		return
	}
	for _, w := range group {
		w.err, w.done = err, true
	}
}

// transact is one write transaction, durable when it returns nil. The caller
// holds writing. A *DamageError ends the writing for good: what bbolt has in
// memory after a panic is not to be trusted with the file.
func (h *handle) transact(where place, group []*write) error {
	if broken := h.broken.Load(); broken != nil {
		return broken
	}
	var tx *bolt.Tx
	err := guard(h.path, where, func() (err error) {
		if tx, err = h.db.Begin(true); err != nil {
			return err
		}
		for _, w := range group {
			if err := w.apply(tx); err != nil {
				return err
			}
		}
		if h.fail.before != nil {
			return h.fail.before
		}
		if err := tx.Commit(); err != nil { // it rolls back by itself
			return err
		}
		return h.fail.after
	})
	if err == nil {
		return nil
	}
	var damage *DamageError
	if errors.As(err, &damage) {
		h.broken.Store(damage)
	}
	if tx != nil && tx.DB() != nil {
		if failed := guard(h.path, place{what: "rolling back"}, tx.Rollback); failed != nil {
			h.stuck.Store(true)
		}
	}
	if damage != nil {
		return err
	}
	return fmt.Errorf("write to the state file %q: %w", h.path, err)
}

// view reads under guard in a transaction of its own. Nothing of a caller may
// run inside, and no slice of the file may leave it: a write that has to grow
// the file waits for every reader.
func (h *handle) view(where place, read func(tx *bolt.Tx) error) error {
	if h.stuck.Load() {
		return h.broken.Load()
	}
	return guard(h.path, where, func() error { return h.db.View(read) })
}
