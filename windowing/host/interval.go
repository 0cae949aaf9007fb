package host

import "slices"

// interval is a run of applied offsets [from, to).
type interval struct{ from, to int64 }

// intervals is a sorted set of offsets as runs that neither touch nor overlap.
type intervals []interval

// find gives the index of the first run that ends after off.
func (s intervals) find(off int64) int {
	if n := len(s); n > 0 && off >= s[n-1].to {
		return n
	}
	i, _ := slices.BinarySearchFunc(s, off, func(iv interval, off int64) int {
		if iv.to <= off {
			return -1
		}
		return 1
	})
	return i
}

// has says whether off is in the set.
func (s intervals) has(off int64) bool {
	i := s.find(off)
	return i < len(s) && s[i].from <= off
}

// add puts off into the set. It gives the run that holds it now, and the starts
// of runs that this one swallowed.
func (s intervals) add(off int64) (set intervals, run interval, fresh bool, gone []int64) {
	i := s.find(off)
	if i < len(s) && s[i].from <= off {
		return s, s[i], false, nil
	}
	left := i > 0 && s[i-1].to == off
	right := i < len(s) && s[i].from == off+1
	switch {
	case left && right:
		gone = []int64{s[i].from}
		s[i-1].to = s[i].to
		s = slices.Delete(s, i, i+1)
		i--
	case left:
		i--
		s[i].to = off + 1
	case right:
		gone = []int64{s[i].from}
		s[i].from = off
	default:
		s = slices.Insert(s, i, interval{off, off + 1})
		fresh = true
	}
	return s, s[i], fresh, gone
}
