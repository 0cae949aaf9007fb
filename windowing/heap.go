package windowing

// earlier is what a heap orders its elements by.
type earlier[T any] interface{ before(T) bool }

// minHeap is a binary heap whose first element comes before all others. Its zero
// value is empty.
type minHeap[T earlier[T]] []T

// push puts an element in. An element behind all others stays where it is put,
// so that rows in the order of their times cost nothing.
func (h *minHeap[T]) push(it T) {
	*h = append(*h, it)
	list, at := *h, len(*h)-1
	for at > 0 {
		parent := (at - 1) / 2
		if !it.before(list[parent]) {
			break
		}
		list[at] = list[parent]
		at = parent
	}
	list[at] = it
}

// pop takes the first element out. There must be one.
func (h *minHeap[T]) pop() T {
	list := *h
	first, last := list[0], len(list)-1
	it := list[last]
	var zero T
	list[last] = zero
	list = list[:last]
	*h = list
	if last == 0 {
		return first
	}
	at := 0
	for {
		child := 2*at + 1
		if child >= last {
			break
		}
		if right := child + 1; right < last && list[right].before(list[child]) {
			child = right
		}
		if !list[child].before(it) {
			break
		}
		list[at] = list[child]
		at = child
	}
	list[at] = it
	return first
}
