package statecache

import "sort"

// rest is what of a frozen generation has to reach the base: sorted runs, each of a
// portion of the entries of its index, merged while it is folded. A key is in one run.
type rest struct {
	sifted int // entries looked at
	size   int // entries of all runs
	runs   [][]uint32
	heads  []head // a heap of the runs that are not at their end, the smallest key first
	pos    string // heads stand at the first keys from here on
	placed bool   // heads are there, as the last slice left them
}

// head is the place in a run.
type head struct {
	key string
	run []uint32 // its number first
}

// sift takes on so many entries and says whether they were the last. It leaves out
// what newer deletes of the generation took, what the active generation decides, and
// what is in the base already, below pos.
func (g *generation) sift(active *index, pos string, items int) (all bool) {
	x, r := &g.index, &g.rest
	end := min(r.sifted+items, len(x.entries))
	own, newer := spanFinder{spans: &x.deleted}, spanFinder{spans: &active.deleted}
	var puts []freshPut
	var numbers []uint32
	for r.sifted < end {
		some := x.entries[r.sifted:min(r.sifted+block, end)]
		active.fetch(some)
		for i := range some {
			e := &some[i]
			key := x.key(e)
			if rank, ok := own.find(text(key)); ok && (e.gone() || rank > e.rank()) {
				continue // a newer delete took what was put, any takes what was deleted
			}
			if _, ok := newer.find(text(key)); ok || text(key) < pos || active.find(e.hash, key) != nil {
				continue
			}
			puts = append(puts, freshPut{key: text(key)})
			numbers = append(numbers, uint32(r.sifted+i))
		}
		r.sifted += len(some)
	}
	if len(puts) > 0 {
		run := make([]uint32, len(puts))
		for i, m := range sortedMarks(puts) {
			run[i] = numbers[m.put]
		}
		r.runs, r.size = append(r.runs, run), r.size+len(run)
	}
	return end == len(x.entries)
}

// seek moves to the first key from pos on. After a commit that succeeded it is there
// already; one that failed may have moved it anywhere.
func (r *rest) seek(x *index, pos string) {
	if r.placed && r.pos == pos {
		r.placed = false
		return
	}
	r.placed, r.heads = false, r.heads[:0]
	for _, run := range r.runs {
		i := sort.Search(len(run), func(i int) bool { return text(x.key(&x.entries[run[i]])) >= pos })
		if i < len(run) {
			r.heads = append(r.heads, head{text(x.key(&x.entries[run[i]])), run[i:]})
		}
	}
	for i := len(r.heads)/2 - 1; i >= 0; i-- {
		r.sink(i)
	}
}

// next moves to the following key.
func (r *rest) next(x *index) {
	h := &r.heads[0]
	if h.run = h.run[1:]; len(h.run) > 0 {
		h.key = text(x.key(&x.entries[h.run[0]]))
	} else {
		last := len(r.heads) - 1
		r.heads[0], r.heads[last] = r.heads[last], head{}
		r.heads = r.heads[:last]
	}
	r.sink(0)
}

// sink restores the order of the heap below i.
func (r *rest) sink(i int) {
	for {
		least := 2*i + 1
		if least >= len(r.heads) {
			return
		}
		if right := least + 1; right < len(r.heads) && r.heads[right].key < r.heads[least].key {
			least = right
		}
		if r.heads[i].key <= r.heads[least].key {
			return
		}
		r.heads[i], r.heads[least] = r.heads[least], r.heads[i]
		i = least
	}
}
