package windowing

import (
	"fmt"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// Cumulative is the grid of windows that grow from one start by step up to size,
// then start anew (CUMULATE of Flink SQL). Each step is a slice. The grid is
// aligned to 1970-01-01T00:00:00Z plus an offset.
type Cumulative struct {
	size, step watermark.Time // 0 < step <= size, size is a multiple of step
	offset     watermark.Time // 0 <= offset < size
}

// NewCumulative makes a grid. The size is at least 1 ns (ErrSize) and a multiple
// of the step, which is at least a 100000th of it (ErrSlide); the offset may be
// negative and counts modulo the size.
func NewCumulative(size, step, offset time.Duration) (Cumulative, error) {
	switch {
	case size <= 0:
		return Cumulative{}, fmt.Errorf("size %s: %w: use a duration above 0, such as 24h", size, ErrSize)
	case step <= 0:
		return Cumulative{}, fmt.Errorf("step %s: %w: use a duration above 0, at most the size of %s", step, ErrSlide, size)
	case size%step != 0:
		return Cumulative{}, fmt.Errorf("size %s is not a multiple of step %s: %w: the last window would stop short; use a step that divides the size", size, step, ErrSlide)
	case size/step > MaxOverlap:
		return Cumulative{}, fmt.Errorf("step %s with size %s puts a row into more than %d windows: %w: use a larger step", step, size, MaxOverlap, ErrSlide)
	}
	g := Cumulative{size: watermark.Time(size), step: watermark.Time(step)}
	g.offset = floorMod(watermark.Time(offset), g.size)
	return g, nil
}

// Slice gives the step that contains t.
func (g Cumulative) Slice(t watermark.Time) Span {
	return spanAround(t, distance(t, g.size, g.offset)%g.step, g.step)
}

// Next gives the shortest window behind another one that contains the slice.
// Windows that are cut at the end of time are one.
func (g Cumulative) Next(slice, after Span) (window Span, ok bool) {
	at := slice.Start
	before := distance(at, g.size, g.offset)
	gap := apart(at, after.End)
	if gap >= uint64(g.size-before) || after.End == watermark.EndOfTime {
		return Span{}, false
	}
	length := (before + watermark.Time(gap)) / g.step * g.step
	return spanAround(at, before, length+g.step), true
}

// Settings gives size, step and offset; offsets that make the same grid give the
// same text.
func (g Cumulative) Settings() []Setting {
	return []Setting{
		{Field: "size", Value: time.Duration(g.size).String()},
		{Field: "step", Value: time.Duration(g.step).String()},
		{Field: "offset", Value: time.Duration(g.offset).String()},
	}
}
