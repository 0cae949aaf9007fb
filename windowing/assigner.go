package windowing

import (
	"errors"
	"fmt"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// ErrSize says that a window cannot have such a size.
var ErrSize = errors.New("window size out of range")

// Assigner says which windows event time has. It cuts time into slices without
// gaps or overlaps so that every window consists of whole slices: a row is
// applied once, to its slice, and a window merges its slices (Li et al., "No
// Pane, No Gain", SIGMOD Record 34, 2005). Windows are told apart by their bounds
// and ordered by Span.Compare; of two slices the older one is in the older
// windows. An Assigner belongs to one operator.
type Assigner interface {
	// Slice gives the slice that contains t, an event time from watermark.Min to
	// watermark.Max. The window operator asks for every row that does not lie in
	// the slice of the row before.
	Slice(t watermark.Time) Span
	// Next gives the first window behind another one, in the order of
	// Span.Compare, that contains the slice; ok is false where there is none. With
	// endedBy(t) it is the first one that ends after t: a slice for which there is
	// none is late at t, or may be forgotten.
	Next(slice, after Span) (window Span, ok bool)
	// Settings is the part of the definition that says which windows there are.
	Settings() []Setting
}

// Tumbling is the grid of windows of one size, aligned to 1970-01-01T00:00:00Z
// plus an offset. Each window is one slice.
type Tumbling struct {
	size   watermark.Time // > 0
	offset watermark.Time // 0 <= offset < size
}

// NewTumbling makes a grid. The size is at least 1 ns (ErrSize); the offset may
// be negative and counts modulo the size.
func NewTumbling(size, offset time.Duration) (Tumbling, error) {
	if size <= 0 {
		return Tumbling{}, fmt.Errorf("size %s: %w: use a duration above 0, such as 5m", size, ErrSize)
	}
	grid := Tumbling{size: watermark.Time(size)}
	grid.offset = floorMod(watermark.Time(offset), grid.size)
	return grid, nil
}

// Slice gives the window that contains t.
func (g Tumbling) Slice(t watermark.Time) Span {
	return spanAround(t, distance(t, g.size, g.offset), g.size)
}

// Next gives the slice itself unless it stands before.
func (g Tumbling) Next(slice, after Span) (Span, bool) {
	return slice, slice.Compare(after) > 0
}

// Settings gives size and offset; offsets that make the same grid give the same text.
func (g Tumbling) Settings() []Setting {
	return []Setting{
		{Field: "size", Value: time.Duration(g.size).String()},
		{Field: "offset", Value: time.Duration(g.offset).String()},
	}
}
