package sql

import "sync"

const (
	leastAlone = 64
	mostAlone  = 1 << 16
)

// turns lets transactions run side by side until one was in the way of another.
// Batches that upsert the same keys in different orders wait for each other in a
// ring, which a server finds out after a second (deadlock_timeout of PostgreSQL):
// after the first time they run one at a time for a while, after the next for twice
// as long.
type turns struct {
	running sync.RWMutex // held by a transaction, whole by one that runs alone

	mu      sync.Mutex // protects what follows
	alone   int        // how many transactions are to run alone
	stretch int
}

// take waits for a turn and gives the function that ends it.
func (t *turns) take() (done func()) {
	if t.isAlone() {
		t.running.Lock()
		return t.running.Unlock
	}
	t.running.RLock()
	return t.running.RUnlock
}

func (t *turns) isAlone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.alone == 0 {
		return false
	}
	t.alone--
	return true
}

// conflict reports that a transaction was ended because of another one.
func (t *turns) conflict() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.alone == 0 { // else it is a late report of the same
		t.stretch = min(max(2*t.stretch, leastAlone), mostAlone)
	}
	t.alone = max(t.alone, t.stretch)
}
