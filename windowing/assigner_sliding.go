package windowing

import (
	"errors"
	"fmt"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// ErrSlide says that windows of a size cannot start so often or so seldom.
var ErrSlide = errors.New("slide out of range")

// MaxOverlap is how many windows may contain one row: a day-long window every
// second has 86400. Each of them is a row of the output for every group.
const MaxOverlap = 100_000

// Sliding is the grid of windows of one size that start every slide, aligned to
// 1970-01-01T00:00:00Z plus an offset. Its slices lie between the starts and, if
// size is not a multiple of slide, the ends of windows.
type Sliding struct {
	hop    hop
	offset watermark.Time // 0 <= offset < slide
}

// NewSliding makes a grid. The size is at least 1 ns (ErrSize), the slide from
// 1 ns to size and at least a 100000th of it (ErrSlide); the offset may be
// negative and counts modulo the slide.
func NewSliding(size, slide, offset time.Duration) (Sliding, error) {
	if size <= 0 {
		return Sliding{}, fmt.Errorf("size %s: %w: use a duration above 0, such as 10m", size, ErrSize)
	}
	if err := checkSlide(int64(size), int64(slide), size.String(), slide.String()); err != nil {
		return Sliding{}, err
	}
	g := Sliding{hop: hop{size: int64(size), slide: int64(slide)}}
	g.offset = floorMod(watermark.Time(offset), watermark.Time(slide))
	return g, nil
}

// checkSlide refuses a slide that does not fit the size (> 0), both in the same
// unit and as the user wrote them.
func checkSlide(size, slide int64, sizeText, slideText string) error {
	switch {
	case slide <= 0:
		return fmt.Errorf("slide %s: %w: use a duration above 0, at most the size of %s", slideText, ErrSlide, sizeText)
	case slide > size:
		return fmt.Errorf("slide %s is larger than size %s: %w: rows between two windows would be in none; use at most the size", slideText, sizeText, ErrSlide)
	case (size-1)/slide >= MaxOverlap:
		return fmt.Errorf("slide %s with size %s puts a row into more than %d windows: %w: use a larger slide", slideText, sizeText, MaxOverlap, ErrSlide)
	}
	return nil
}

// Slice gives the slice that contains t.
func (g Sliding) Slice(t watermark.Time) Span {
	before, length := g.hop.slice(g.into(t))
	return spanAround(t, watermark.Time(before), watermark.Time(length))
}

// into is the distance of t from the last start at or before it.
func (g Sliding) into(t watermark.Time) int64 {
	return int64(distance(t, watermark.Time(g.hop.slide), g.offset))
}

// Next gives the first window behind another one that contains the slice.
func (g Sliding) Next(slice, after Span) (window Span, ok bool) {
	// Any position in the slice has the same windows; its start is an event time
	// also where the slice is cut at the beginning of time.
	at, before := slice.Start, int64(0)
	d := g.into(at)
	if after.End < watermark.EndOfTime {
		before, ok = g.hop.ending(d, apart(at, after.End))
	} else {
		// Windows beyond the largest event time end at the same instant here, so
		// that their starts decide.
		if after.Start >= at {
			return Span{}, false
		}
		before, ok = g.hop.starting(d, apart(at, watermark.Max), apart(after.Start, at))
	}
	if !ok {
		return Span{}, false
	}
	return spanAround(at, watermark.Time(before), watermark.Time(g.hop.size)), true
}

// Settings gives size, slide and offset; offsets that make the same grid give
// the same text.
func (g Sliding) Settings() []Setting {
	return []Setting{
		{Field: "size", Value: time.Duration(g.hop.size).String()},
		{Field: "slide", Value: time.Duration(g.hop.slide).String()},
		{Field: "offset", Value: time.Duration(g.offset).String()},
	}
}

// apart is how far to lies behind from, 0 where it does not. The difference of
// two times needs 64 bits without a sign.
func apart(from, to watermark.Time) uint64 {
	if to <= from {
		return 0
	}
	return uint64(to) - uint64(from)
}

// distance is how far t lies behind the last of the instants k*size + offset at
// or before it (0 <= offset < size).
func distance(t, size, offset watermark.Time) watermark.Time {
	before := floorMod(t, size) - offset
	if before < 0 {
		before += size
	}
	return before
}
