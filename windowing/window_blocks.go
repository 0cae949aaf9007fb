package windowing

import (
	"math"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// Slices are merged by block where windows have very many of them: a block is the
// slices that start in one stretch of time, merged once and kept until a row
// changes one of them. With n slices a window then merges some 3 times the root of
// n tables. Blocks are no state: they are made when a window needs them.
type blockTable struct {
	length watermark.Time // 0: not known yet
	tables map[watermark.Time]*timeSlice
	pieces []*timeSlice // memory of pieces
}

const (
	// manySlices is from which number on blocks pay.
	manySlices = 64
	// smallBlock is the number of slices that are not worth a block.
	smallBlock = 4
)

// pieces gives the tables that make up a window, good until the next call.
func (w *Window) pieces(window Span) []*timeSlice {
	parts := w.state.within(window)
	if len(parts) < manySlices {
		return parts
	}
	b := &w.blocks
	if b.length == 0 {
		b.tables = map[watermark.Time]*timeSlice{}
		// Slices are of about one length.
		size, slice := apart(window.Start, window.End), apart(parts[0].span.Start, parts[0].span.End)
		b.length = max(1, watermark.Time(float64(size)/math.Sqrt(float64(size)/float64(slice))))
	}
	b.pieces = b.pieces[:0]
	for len(parts) > 0 {
		n := 1
		from, inside := b.start(parts[0], window)
		if inside {
			for n < len(parts) && apart(from, parts[n].span.Start) < uint64(b.length) {
				n++
			}
		}
		if n < smallBlock {
			b.pieces = append(b.pieces, parts[:n]...)
		} else {
			b.pieces = append(b.pieces, w.block(from, parts[:n]))
		}
		parts = parts[n:]
	}
	return b.pieces
}

// start gives the start of the block of a slice. It is inside where all of its
// time lies in the window, so that a slice that is not there cannot be missing.
func (b *blockTable) start(s *timeSlice, window Span) (from watermark.Time, inside bool) {
	before := floorMod(s.span.Start, b.length)
	if apart(window.Start, s.span.Start) < uint64(before) {
		return 0, false
	}
	from = s.span.Start - before
	return from, apart(from, window.End) >= uint64(b.length)
}

// block gives the merged slices of a block.
func (w *Window) block(from watermark.Time, parts []*timeSlice) *timeSlice {
	table := w.blocks.tables[from]
	if table == nil {
		table = newTimeSlice(Span{}, w.config.Aggregates)
		w.mergeTables(table, parts)
		w.blocks.tables[from] = table
	}
	return table
}

// changed drops the block of a slice that takes rows.
func (b *blockTable) changed(s *timeSlice) {
	if len(b.tables) > 0 {
		delete(b.tables, s.span.Start-floorMod(s.span.Start, b.length))
	}
}

// drop drops the blocks before the oldest slice, all where there is none.
func (b *blockTable) drop(slices []*timeSlice) {
	for from := range b.tables {
		if len(slices) == 0 || apart(from, slices[0].span.Start) >= uint64(b.length) {
			delete(b.tables, from)
		}
	}
}
