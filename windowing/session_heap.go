package windowing

import (
	"cmp"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// sessionHeap orders sessions by (end, start, group): closing looks at those that
// are due and at no others. Ends only grow while rows come, so that a session
// that is prolonged keeps its place, which is then too early: next puts it right
// when it gets there. A session has one place, and what happens to it between two
// rows costs nothing.
type sessionHeap []*session

// sessionPlace is where a session stands in the heap.
type sessionPlace struct {
	end watermark.Time // by which it stands there, not behind its own
	at  int
}

// compare orders by the places, then by start and group.
func (it *session) compare(other *session) int {
	if c := cmp.Compare(it.place.end, other.place.end); c != 0 {
		return c
	}
	if c := cmp.Compare(it.bounds.Start, other.bounds.Start); c != 0 {
		return c
	}
	return cmp.Compare(it.group.key, other.group.key)
}

// next is the session that closes first, nil where there is none.
func (h sessionHeap) next() *session {
	for len(h) > 0 {
		it := h[0]
		if it.place.end == it.bounds.End {
			return it
		}
		it.place.end = it.bounds.End
		h.down(0)
	}
	return nil
}

func (h *sessionHeap) push(it *session) {
	it.place = sessionPlace{end: it.bounds.End, at: len(*h)}
	*h = append(*h, it)
	h.up(it.place.at)
}

// remove takes a session out.
func (h *sessionHeap) remove(it *session) {
	last := len(*h) - 1
	at := it.place.at
	h.set(at, (*h)[last])
	(*h)[last] = nil
	*h = (*h)[:last]
	if at < last {
		h.moved((*h)[at])
	}
}

// moved puts a session right whose start has changed, or that stands anywhere.
func (h sessionHeap) moved(it *session) {
	h.up(it.place.at)
	h.down(it.place.at)
}

func (h sessionHeap) set(at int, it *session) {
	h[at] = it
	it.place.at = at
}

func (h sessionHeap) up(at int) {
	it := h[at]
	for at > 0 {
		parent := (at - 1) / 2
		if it.compare(h[parent]) >= 0 {
			break
		}
		h.set(at, h[parent])
		at = parent
	}
	h.set(at, it)
}

func (h sessionHeap) down(at int) {
	it := h[at]
	for {
		child := 2*at + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].compare(h[child]) < 0 {
			child = right
		}
		if h[child].compare(it) >= 0 {
			break
		}
		h.set(at, h[child])
		at = child
	}
	h.set(at, it)
}
