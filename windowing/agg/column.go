package agg

import (
	"fmt"
	"unsafe"
)

// Column keeps the accumulators of one call for many groups, by number from 0.
// They lie side by side: the collector has no object for each to follow, and a
// group costs the memory of its numbers and no more. One owner uses it.
type Column interface {
	// Extend adds an empty accumulator, under the next number.
	Extend()
	// At gives an accumulator, good until the next Extend or Clear.
	At(number uint32) Accumulator
	// Set puts an accumulator of the same call in the place of another. The one
	// that is given is not to be used any more.
	Set(number uint32, acc Accumulator)
	// Clear takes all accumulators out. Memory is used again.
	Clear()
}

// column is a Column of cells. All pieces but the last one are full, so that a
// column that grows moves its first few cells only.
type column[T any, A cell[T]] struct {
	call   *Call
	empty  func(c *Call) T
	shift  uint8 // a piece has 1<<shift cells
	pieces [][]T
	spare  [][]T // empty pieces
	sum    byte  // of no use but that At has to read for it
}

// cell is an accumulator that may lie in a column.
type cell[T any] interface {
	*T
	state
}

const (
	pieceBytes = 32 << 10 // of a full piece, about
	mostCells  = 1 << 9   // of a piece
)

func newColumn[T any, A cell[T]](c *Call, empty func(c *Call) T) *column[T, A] {
	col := &column[T, A]{call: c, empty: empty}
	var one T
	for size := unsafe.Sizeof(one); 2<<col.shift <= mostCells && 2*size<<col.shift <= pieceBytes; {
		col.shift++
	}
	return col
}

func (c *column[T, A]) Extend() {
	last := len(c.pieces) - 1
	if last < 0 || len(c.pieces[last]) == 1<<c.shift {
		c.pieces = append(c.pieces, c.piece())
		last++
	}
	c.pieces[last] = append(c.pieces[last], c.empty(c.call))
}

// piece gives an empty piece. The first one grows as it fills: most columns of
// small windows never have more.
func (c *column[T, A]) piece() []T {
	if n := len(c.spare); n > 0 {
		piece := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return piece
	}
	if len(c.pieces) == 0 {
		return nil
	}
	return make([]T, 0, 1<<c.shift)
}

func (c *column[T, A]) At(number uint32) Accumulator {
	a := c.at(number)
	// Who looks up many before it adds to the first has the processor fetch their
	// memory side by side: each is a miss of the cache.
	c.sum ^= *(*byte)(unsafe.Pointer(a))
	return a
}

func (c *column[T, A]) at(number uint32) A {
	return &c.pieces[number>>c.shift][number&(1<<c.shift-1)]
}

func (c *column[T, A]) Set(number uint32, acc Accumulator) { *c.at(number) = *acc.(A) }

func (c *column[T, A]) Clear() {
	for i, piece := range c.pieces {
		clear(piece)
		c.pieces[i] = piece[:0]
	}
	c.spare, c.pieces = append(c.spare, c.pieces...), c.pieces[:0]
}

// define completes a table entry: New, NewColumn and Decode follow from one
// constructor.
func define[T any, A cell[T]](f Function, empty func(c *Call) T) *Function {
	fresh := func(c *Call) A {
		one := empty(c)
		return &one
	}
	f.New = func(c *Call) Accumulator { return fresh(c) }
	f.NewColumn = func(c *Call) Column { return newColumn[T, A](c, empty) }
	f.Decode = func(c *Call, b []byte) (Accumulator, []byte, error) {
		acc := fresh(c)
		d := reader{b: b}
		acc.decode(&d)
		if d.err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Name, d.err)
		}
		return acc, d.b, nil
	}
	return &f
}
