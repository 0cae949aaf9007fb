package windowing

import (
	"cmp"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// Span is a half-open stretch of event time, [Start, End). A bound beyond the
// smallest or the largest event time is cut to watermark.Min or to
// watermark.EndOfTime, which lies one nanosecond after the largest event time:
// a span that contains watermark.Max ends at EndOfTime and nothing but the end
// of time closes it.
type Span struct {
	Start watermark.Time // inclusive
	End   watermark.Time // exclusive
}

// Contains says whether t lies in the span.
func (s Span) Contains(t watermark.Time) bool { return s.Start <= t && t < s.End }

// Compare orders spans as windows come out: by end, then by start.
func (s Span) Compare(other Span) int {
	if c := cmp.Compare(s.End, other.End); c != 0 {
		return c
	}
	return cmp.Compare(s.Start, other.Start)
}

// endedBy stands, in the order of Compare, behind all spans that end at or before
// t and before all others.
func endedBy(t watermark.Time) Span { return Span{Start: watermark.EndOfTime, End: t} }

// last is the event time of a row that stands for the span: the last instant in it.
func (s Span) last() watermark.Time { return s.End - 1 }

// spanAround gives the span of the given size (> 0) that starts before (0 <=
// before < size) the event time t, cut to the range of event time. Differences
// of two bounds need not fit into 64 bits, so that the cuts are decided before
// anything is added.
func spanAround(t watermark.Time, before, size watermark.Time) Span {
	s := Span{Start: watermark.Min, End: watermark.EndOfTime}
	if t >= watermark.Min+before {
		s.Start = t - before
	}
	if after := size - before; t <= watermark.Max-after {
		s.End = t + after
	}
	return s
}

// floorMod is the remainder of the division that rounds down: in [0, size) for
// negative t too, where Go's % is negative.
func floorMod(t, size watermark.Time) watermark.Time {
	r := t % size
	if r < 0 {
		r += size
	}
	return r
}
