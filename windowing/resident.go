package windowing

import "github.com/connect-windowed/connect-windowed/statecache/kv"

// Bounded is an Operator whose state may be larger than memory: what is on disk may
// leave memory, and is read back when it is asked for.
type Bounded interface {
	// Bound is called once, before Load: about so many bytes of state may stay in
	// memory, beside what is not on disk yet. The reader, with the keys of Save, is
	// read until the operator is gone, by its goroutine, also while a write set of
	// the operator is being committed.
	Bound(bytes int64, committed kv.Reader)
	// Committed says that everything that was saved is on disk.
	Committed()
	// Held is the estimate of the bytes that the operator has in memory.
	Held() int64
}

// resident is what an operator with a bound knows of its memory. Without one it does
// nothing. It is embedded, and gives the operator a part of Bounded.
type resident struct {
	bound   int64 // bytes, 0: none
	held    int64 // bytes in memory, roughly
	disk    kv.Reader
	saves   int64 // so far, the next one has this number
	durable int64 // the Saves below it are on disk
	stuck   bool  // nothing else can leave before the next commit
}

// Bound implements Bounded.
func (m *resident) Bound(bytes int64, committed kv.Reader) {
	m.bound, m.disk = max(bytes, 1), committed
}

// Held implements Bounded.
func (m *resident) Held() int64 { return m.held }

// bounded says that state may leave memory.
func (m *resident) bounded() bool { return m.bound > 0 }

// committed notes that everything saved so far is on disk.
func (m *resident) committed() { m.durable, m.stuck = m.saves, false }

// full says that something has to leave memory, as far as it can.
func (m *resident) full() bool { return m.bounded() && m.held > m.bound && !m.stuck }

// excess is how many bytes are to leave: enough for a while.
func (m *resident) excess() int64 { return m.held - m.bound + m.bound/4 }

// A rough estimate of the memory of an entry beside its texts: its struct, its place
// in a map of texts, in a list, and what the allocator rounds up.
const entryBytes = 144

// few is how many entries are a small part of what memory holds.
func (m *resident) few() int { return int(m.bound / (16 * entryBytes)) }

// onDisk is the number of the Save of what was read.
const onDisk = -1

// layout says in a definition how records lie: by segment, or with an index. State of
// an earlier layout is not read.
var layout = Setting{Field: "layout of the state", Value: "2"}
