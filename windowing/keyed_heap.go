package windowing

import (
	"math"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// timerKind is what a timer follows and does.
type timerKind uint8

// The kinds. Numbers are written to disk.
const (
	eventTimer  timerKind = iota // event time
	wallTimer                    // the wall clock
	expiryTimer                  // event time: its key is dropped. Not on disk
)

// lastNumber is behind the number of every timer that code sets.
const lastNumber = math.MaxInt64

// keyTimer is a timer that waits.
type keyTimer struct {
	owner  *keyedKey
	name   string
	kind   timerKind
	at     watermark.Time
	number int64 // of its registration
	place  int   // in its heap
}

// timerHeap orders timers by (time, key, registration): what is due is looked at,
// and nothing else. Most timers are put off again and again before they fire. One
// that is put off keeps its place, which is then too early, until the clock gets
// there.
type timerHeap []timerEntry

// timerEntry is the place of a timer: what it stands by, never behind its own.
type timerEntry struct {
	at     watermark.Time
	number int64
	timer  *keyTimer
}

func (e *timerEntry) before(other *timerEntry) bool {
	if e.at != other.at {
		return e.at < other.at
	}
	if e.timer.owner != other.timer.owner {
		return e.timer.owner.key < other.timer.owner.key
	}
	return e.number < other.number
}

// first is the timer that fires first, nil where none is there.
func (h timerHeap) first() *keyTimer {
	return h.next(watermark.EndOfTime)
}

// next is the timer that fires first, nil where none is due at now.
func (h timerHeap) next(now watermark.Time) *keyTimer {
	for len(h) > 0 && h[0].at <= now {
		t := h[0].timer
		if h[0].at == t.at && h[0].number == t.number {
			return t
		}
		h[0].at, h[0].number = t.at, t.number
		h.down(0)
	}
	return nil
}

func (h *timerHeap) push(t *keyTimer) {
	t.place = len(*h)
	*h = append(*h, timerEntry{t.at, t.number, t})
	h.up(t.place)
}

// moved tells that a timer is at another time.
func (h timerHeap) moved(t *keyTimer) {
	if e := &h[t.place]; t.at < e.at {
		e.at, e.number = t.at, t.number
		h.up(t.place)
	}
}

// remove takes a timer out.
func (h *timerHeap) remove(t *keyTimer) {
	list, at := *h, t.place
	last := len(list) - 1
	moved := list[last]
	list[last] = timerEntry{}
	*h = list[:last]
	if at == last {
		return
	}
	h.put(at, moved)
	h.up(at)
	h.down(moved.timer.place)
}

func (h timerHeap) put(at int, e timerEntry) {
	h[at] = e
	e.timer.place = at
}

func (h timerHeap) up(at int) {
	e := h[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !e.before(&h[parent]) {
			break
		}
		h.put(at, h[parent])
		at = parent
	}
	h.put(at, e)
}

func (h timerHeap) down(at int) {
	e := h[at]
	for {
		child := 2*at + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].before(&h[child]) {
			child = right
		}
		if !h[child].before(&e) {
			break
		}
		h.put(at, h[child])
		at = child
	}
	h.put(at, e)
}
