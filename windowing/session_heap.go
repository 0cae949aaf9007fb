package windowing

import (
	"cmp"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// sessionHeap orders sessions by (end, start, group): closing looks at those that
// are due and at no others. Ends only grow while rows come, so that a session
// that is prolonged keeps its place, which is then too early; it is put right
// when the watermark gets there. What happens to a session in between costs
// nothing here.
type sessionHeap []heapEntry

// heapEntry is the place of a session.
type heapEntry struct {
	end watermark.Time // by which it stands there, not behind its own
	it  *session
}

// before orders by end, start and group.
func (e heapEntry) before(other heapEntry) bool {
	if e.end != other.end {
		return e.end < other.end
	}
	if c := cmp.Compare(e.it.bounds.Start, other.it.bounds.Start); c != 0 {
		return c < 0
	}
	return e.it.group.key < other.it.group.key
}

// next is the session that closes first, nil where none is due.
func (h sessionHeap) next(isDue func(end watermark.Time) bool) *session {
	for len(h) > 0 && isDue(h[0].end) {
		it := h[0].it
		if h[0].end == it.bounds.End {
			return it
		}
		h[0].end = it.bounds.End
		h.down(0)
	}
	return nil
}

func (h *sessionHeap) push(it *session) {
	it.place = len(*h)
	*h = append(*h, heapEntry{it.bounds.End, it})
	h.up(it.place)
}

// remove takes a session out.
func (h *sessionHeap) remove(it *session) {
	last := len(*h) - 1
	at := it.place
	h.set(at, (*h)[last])
	(*h)[last] = heapEntry{}
	*h = (*h)[:last]
	if at < last {
		h.moved((*h)[at].it)
	}
}

// moved puts a session right whose start has changed, or that stands anywhere.
func (h sessionHeap) moved(it *session) {
	h.up(it.place)
	h.down(it.place)
}

func (h sessionHeap) set(at int, e heapEntry) {
	h[at] = e
	e.it.place = at
}

func (h sessionHeap) up(at int) {
	e := h[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !e.before(h[parent]) {
			break
		}
		h.set(at, h[parent])
		at = parent
	}
	h.set(at, e)
}

func (h sessionHeap) down(at int) {
	e := h[at]
	for {
		child := 2*at + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].before(h[child]) {
			child = right
		}
		if !h[child].before(e) {
			break
		}
		h.set(at, h[child])
		at = child
	}
	h.set(at, e)
}
