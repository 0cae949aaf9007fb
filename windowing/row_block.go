package windowing

import "github.com/connect-windowed/connect-windowed/windowing/agg"

const (
	// blockRows is how many rows are brought to their groups side by side.
	blockRows = 64
	// manyGroups is from which number on that pays: fewer stay in the cache.
	manyGroups = 4096
)

// rowBlock is rows on their way to their groups. With many groups each piece of a
// group is a miss of the cache; taking one step for all rows before the next one
// lets the processor fetch the memory of many groups at the same time.
type rowBlock struct {
	n    int
	rows [blockRows]placedRow
	accs [blockRows]agg.Accumulator
}

// placedRow is a row and its group.
type placedRow struct {
	row    *Row
	slice  *timeSlice
	hash   uint32
	number uint32 // of the group
	end    int
	last   byte
}

// add takes a row, which must stay until it is applied, and says whether the block
// is full.
func (b *rowBlock) add(s *timeSlice, row *Row) (full bool) {
	p := &b.rows[b.n]
	p.row, p.slice = row, s
	b.n++
	return b.n == blockRows
}

// apply brings the rows of the block to their groups, in their order.
func (w *Window) apply(b *rowBlock) {
	placed := b.rows[:b.n]
	for i := range placed {
		p := &placed[i]
		p.hash = hashKey(p.row.Key)
		p.number = p.slice.groups.guess(p.hash)
	}
	for i := range placed {
		p := &placed[i]
		p.end = p.slice.groups.end(p.number)
	}
	for i := range placed {
		p := &placed[i]
		p.last = p.slice.groups.before(p.end)
	}
	for i := range placed {
		p := &placed[i]
		p.number = w.place(p.slice, p.row, p.hash)
	}
	for j := range w.config.Aggregates {
		for i := range placed {
			p := &placed[i]
			b.accs[i] = p.slice.columns[j].At(p.number)
		}
		for i := range placed {
			if in, ok := w.args.input(j, placed[i].row); ok {
				b.accs[i].Add(in)
			}
		}
	}
	clear(placed)
	clear(b.accs[:b.n])
	b.n = 0
}
