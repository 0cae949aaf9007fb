package statecache

import (
	"cmp"
	"slices"

	"github.com/connect-windowed/connect-windowed/statecache/internal/ordered"
)

// freshPut is an assignment that nothing has ordered yet.
type freshPut struct {
	key   string
	value []byte
}

// mark stands for a put while puts are sorted. Most comparisons end with num: 8
// bytes of the key from where the keys at hand begin to differ.
type mark struct {
	num   uint64
	put   uint32 // number of the put, in the order in which they apply
	again bool   // a later put is on the same key
}

// sortedMarks gives a mark for each put, in the order of their keys; puts on one
// key stay in the order in which they apply.
func sortedMarks(puts []freshPut) []mark {
	marks := make([]mark, len(puts))
	for i := range marks {
		marks[i].put = uint32(i)
	}
	if len(marks) > 1 {
		sortMarks(puts, marks, 0)
	}
	return marks
}

// sortMarks sorts marks whose keys agree in their first `from` bytes. It is a
// multikey sort that looks at 8 bytes at once: the keys of a state share long
// prefixes, which would be compared again and again.
func sortMarks(puts []freshPut, marks []mark, from int) {
	common := sharedPrefix(puts, marks, from)
	for i := range marks {
		marks[i].num = ordered.Number(puts[marks[i].put].key, common)
	}
	sortNums(marks)
	for len(marks) > 0 {
		n := 1
		for n < len(marks) && marks[n].num == marks[0].num {
			n++
		}
		if n > 1 {
			sortTies(puts, marks[:n], common+8)
		}
		marks = marks[n:]
	}
}

// sortTies sorts marks with one num, whose keys agree in their first `seen` bytes
// or end before, some perhaps in zeros. They come in the order of their numbers.
func sortTies(puts []freshPut, marks []mark, seen int) {
	shortest, longest := len(puts[marks[0].put].key), 0
	for _, m := range marks {
		n := len(puts[m.put].key)
		shortest, longest = min(shortest, n), max(longest, n)
	}
	switch {
	case shortest == longest && longest <= seen: // one key
		for i := range marks[1:] {
			marks[i].again = true
		}
	case shortest >= seen:
		sortMarks(puts, marks, seen)
	default:
		slices.SortFunc(marks, func(a, b mark) int {
			if c := cmp.Compare(puts[a.put].key, puts[b.put].key); c != 0 {
				return c
			}
			return cmp.Compare(a.put, b.put)
		})
		for i := range marks[1:] {
			marks[i].again = puts[marks[i].put].key == puts[marks[i+1].put].key
		}
	}
}

// fewMarks are sorted by comparing.
const fewMarks = 128

// sortNums sorts marks by num and keeps the order of those with the same one: by
// one byte of it after the other, the last byte first, leaving out those in which
// all nums agree.
func sortNums(marks []mark) {
	if len(marks) <= fewMarks {
		slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(a.num, b.num) })
		return
	}
	differ := uint64(0)
	for i := range marks {
		differ |= marks[i].num ^ marks[0].num
	}
	from, to := marks, make([]mark, len(marks))
	for shift := 0; shift < 64; shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		var at [256]int
		for i := range from {
			at[from[i].num>>shift&0xff]++
		}
		sum := 0
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for _, m := range from {
			b := m.num >> shift & 0xff
			to[at[b]] = m
			at[b]++
		}
		from, to = to, from
	}
	if &from[0] != &marks[0] {
		copy(marks, from)
	}
}

// sharedPrefix is the number of bytes with which all keys begin, at least from.
func sharedPrefix(puts []freshPut, marks []mark, from int) int {
	first := puts[marks[0].put].key
	common := len(first)
	for _, m := range marks[1:] {
		key := puts[m.put].key
		if len(key) < common || key[from:common] != first[from:common] {
			common = from + ordered.CommonPrefix(key[from:], first[from:common])
		}
	}
	return common
}
