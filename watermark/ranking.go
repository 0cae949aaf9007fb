package watermark

import (
	"slices"
	"time"
)

// slowest ranks by the smallest time: a binary heap with keys that may be out of date.
// Times only grow, so a key is a lower bound, and it is enough to bring the top up to
// date before it is believed. A partition that speaks costs nothing here until it
// reaches the top, and one that fell idle is noticed there.
type slowest struct {
	heap []entry
}

type entry struct {
	key Time // not above p.time
	p   *partition
}

func (r *slowest) spoke(p *partition) {
	if p.queued {
		return
	}
	p.queued = true
	r.heap = append(r.heap, entry{p.time, p})
	for at := len(r.heap) - 1; at > 0; {
		up := (at - 1) / 2
		if r.heap[up].key <= r.heap[at].key {
			break
		}
		r.heap[up], r.heap[at] = r.heap[at], r.heap[up]
		at = up
	}
}

func (r *slowest) head(idle time.Duration) *partition {
	for len(r.heap) > 0 {
		top := &r.heap[0]
		switch {
		case top.p.spoken <= idle:
			top.p.queued = false
			last := len(r.heap) - 1
			*top, r.heap[last] = r.heap[last], entry{}
			r.heap = r.heap[:last]
		case top.key < top.p.time:
			top.key = top.p.time
		default:
			return top.p
		}
		r.down()
	}
	return nil
}

// down restores the heap below a top that has grown.
func (r *slowest) down() {
	h := r.heap
	for at := 0; ; {
		low := 2*at + 1
		if low >= len(h) {
			return
		}
		if right := low + 1; right < len(h) && h[right].key < h[low].key {
			low = right
		}
		if h[at].key <= h[low].key {
			return
		}
		h[at], h[low] = h[low], h[at]
		at = low
	}
}

// fastest ranks by the largest time: the queue of a sliding maximum. It holds, in the
// order in which they last spoke, the partitions that none who spoke later or with them
// has reached, so times fall from front to back, and the front falls idle first. A
// partition that speaks takes its older entry and all behind it along, which its time
// has reached.
type fastest struct {
	queue []*partition
	front int
}

func (r *fastest) spoke(p *partition) {
	for len(r.queue) > r.front && r.queue[len(r.queue)-1].time <= p.time {
		r.queue = r.queue[:len(r.queue)-1]
	}
	if r.front > len(r.queue)/2 {
		r.queue = slices.Delete(r.queue, 0, r.front)
		r.front = 0
	}
	r.queue = append(r.queue, p)
}

func (r *fastest) head(idle time.Duration) *partition {
	for ; r.front < len(r.queue); r.front++ {
		if p := r.queue[r.front]; p.spoken > idle {
			return p
		}
	}
	return nil
}
