package windowing

// hop is the arithmetic of windows of one size that start every slide, over
// positions that are whole numbers: nanoseconds, or days or months of a calendar.
// 0 < slide <= size.
//
// A position is given by d, its distance from the last start at or before it (0
// <= d < slide). The windows that contain it start d + n*slide before it, n = 0,
// 1, ... while that is less than size. Everything is a distance from a position,
// never a position, so that nothing leaves the range of 64 bits at the ends of
// time.
type hop struct{ size, slide int64 }

// slice gives the slice around a position: how far before it it starts, and how
// long it is. Cuts are at the starts of windows and, where size is not a multiple
// of slide, at their ends.
func (h hop) slice(d int64) (before, length int64) {
	rest := h.size % h.slide
	switch {
	case rest == 0:
		return d, h.slide
	case d < rest:
		return d, rest
	}
	return d - rest, h.slide - rest
}

// ending gives the first window that contains the position and ends more than
// gap behind it, as how far before the position it starts.
func (h hop) ending(d int64, gap uint64) (before int64, ok bool) {
	if longest := uint64(h.size - d); gap < longest {
		return d + int64((longest-gap-1)/uint64(h.slide))*h.slide, true
	}
	return 0, false
}

// starting is ending for windows that also start less than reach (> 0) before
// the position.
func (h hop) starting(d int64, gap, reach uint64) (before int64, ok bool) {
	if before, ok = h.ending(d, gap); !ok || uint64(before) < reach {
		return before, ok
	}
	if reach <= uint64(d) {
		return 0, false
	}
	return d + int64((reach-1-uint64(d))/uint64(h.slide))*h.slide, true
}
