package windowing

import "slices"

// room is memory of an Output, used again after each Reset.
type room[T any] struct{ used []T }

const (
	roomLeast = 64
	roomMost  = 4 * PartLimit // what is larger is for one time
)

// take gives n elements that lie side by side and are zero, until the next reset.
func (r *room[T]) take(n int) []T {
	from := len(r.used)
	if n > cap(r.used)-from { // those that were taken stay where they are
		from, r.used = 0, make([]T, 0, max(n, 2*cap(r.used), roomLeast))
	}
	r.used = r.used[:from+n]
	return r.used[from : from+n : from+n]
}

// reset takes everything back.
func (r *room[T]) reset() {
	if cap(r.used) > roomMost {
		r.used = nil
		return
	}
	clear(r.used)
	r.used = r.used[:0]
}

// again gives n rows that are zero, in the memory of those before where that is
// worth it.
func again(rows []Row, n int) []Row {
	if cap(rows) > roomMost {
		rows = nil
	}
	clear(rows)
	return slices.Grow(rows[:0], n)[:n]
}
