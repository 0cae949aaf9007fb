package processors

import (
	"slices"
	"sync"

	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// batchMemory is what the rows and positions of a batch lie in. Batches are of one
// size mostly, and their memory is large: it goes round.
type batchMemory struct {
	rows    []windowing.Row
	entries []host.Entry
}

var batchPool = sync.Pool{New: func() any { return &batchMemory{} }}

// takeBatchMemory gives memory for n messages. It is zero.
func takeBatchMemory(n int) *batchMemory {
	m := batchPool.Get().(*batchMemory)
	m.rows, m.entries = slices.Grow(m.rows, n)[:n], slices.Grow(m.entries, n)[:n]
	return m
}

// release gives the memory back. Nothing may refer to it any more.
func (m *batchMemory) release() {
	clear(m.rows)
	clear(m.entries)
	m.rows, m.entries = m.rows[:0], m.entries[:0]
	batchPool.Put(m)
}
