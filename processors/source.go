package processors

import "sync"

// InsideHost reports whether the component under construction stands in the
// `input` of a `windowed` host. An input calls it from its constructor, on the
// goroutine that constructs it.
//
// Such a host applies batches in the order in which it reads them, acknowledges
// them after its next commit and never refuses one. An input that elsewhere waits
// for an acknowledgement before it hands out more, to keep the order when a batch
// is refused, need not wait there: else every commit would have to wait for it. See
// Handover for an input that nothing stands around.
func InsideHost() bool {
	n := nurseryHere()
	return n != nil && n.input
}

// PartitionMoves is what an input inside of a `windowed` host tells it about
// partitions that move between the members of a consumer group. State does not
// move with them, which the host then says in the log. A nil one, of an input that
// stands elsewhere, takes everything and does nothing.
type PartitionMoves struct {
	mu     sync.Mutex // protects what follows
	host   listener
	before []move // what was told before the host was there
}

// listener is the host.
type listener interface{ Moved(gone, come []string) }

type move struct{ gone, come []string }

// NewPartitionMoves gives the way to the host of the input under construction, nil
// where there is none. An input calls it from its constructor, on the goroutine
// that constructs it.
func NewPartitionMoves() *PartitionMoves {
	n := nurseryHere()
	if n == nil || !n.input {
		return nil
	}
	m := &PartitionMoves{}
	n.moves = append(n.moves, m)
	return m
}

// Tell says which partitions go to another member and which come, named as
// `<topic>/<partition>`. It may be called from any goroutine, and returns soon.
func (m *PartitionMoves) Tell(gone, come []string) {
	if m == nil || len(gone)+len(come) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.host == nil {
		m.before = append(m.before, move{gone, come})
		return
	}
	m.host.Moved(gone, come)
}

// attach makes the host known.
func (m *PartitionMoves) attach(h listener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.host = h
	for _, b := range m.before {
		h.Moved(b.gone, b.come)
	}
	m.before = nil
}

// moved gives what the inputs that were constructed tell.
func (n *nursery) moved() []*PartitionMoves {
	if n == nil {
		return nil
	}
	return n.moves
}
