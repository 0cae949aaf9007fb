package windowing

import "github.com/connect-windowed/connect-windowed/watermark"

// marksAtOnce is how many marks lie side by side. One that stays holds the others.
const marksAtOnce = 64

// render turns the output of a stage into the rows of the next one.
func (c *Chain) render(st *Stage) {
	c.tally[c.at].add(&c.out.tally)
	rows := again(c.room, len(c.out.items))
	w := c.domain()
	for i := range c.out.items {
		it := &c.out.items[i]
		if it.result == nil {
			if it.row.Mark != nil && it.row.Mark.Operator == st.Name {
				it.row.Mark.Watermark = w
			}
			if it.row.failed {
				it.row.failed, it.row.Message = false, st.Binding.Fail(it.row.Message, it.row.Err)
			}
			rows[i] = *it.row
			continue
		}
		c.emit(&rows[i], st, it.result, w)
	}
	c.rows, c.room = rows, rows
}

// emit makes the row of a result.
func (c *Chain) emit(row *Row, st *Stage, res *Result, w watermark.Time) {
	c.arrivals++
	m := st.Binding.Render(res) // which may add an error
	if len(c.marks) == 0 {
		c.marks = make([]Mark, marksAtOnce)
	}
	mark := &c.marks[0]
	c.marks = c.marks[1:]
	*mark = Mark{Operator: st.Name, Timing: res.Timing, RowKey: res.RowKey, Revision: res.Revision,
		Spanned: res.Spanned, Start: res.Start, End: res.End, EventTime: res.Time, Watermark: w}
	row.Time, row.Arrival, row.Source, row.Entry = res.Time, c.arrivals, res.Source-1, -1
	row.Message, row.Mark = m, mark
	if res.Err != nil { // it goes out with its error and enters no further state
		row.Err, row.Flag, row.counted = res.Err, Invalid, true
		if t := &c.tally[c.at]; t.Broken == nil {
			t.Broken = res.Err
		}
	}
}

// leave puts the rows behind the last stage to the exit.
func (c *Chain) leave() {
	if len(c.exit) == 0 {
		c.exit = c.rows
	} else {
		c.exit = append(c.exit, c.rows...)
	}
	c.rows, c.half = nil, false
}

// Take gives the rows that reached the exit since the last Take. They are there
// until the next Run, what they refer to stays.
func (c *Chain) Take() []Row {
	rows := c.exit
	c.exit = nil
	return rows
}
