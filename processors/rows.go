package processors

import (
	"context"
	"errors"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// errLostTime says that a processor inside of a chain made a message from
// nothing.
var errLostTime = errors.New("the message has lost its event time: a processor before it makes new messages instead of deriving them; put such a processor before the watermark")

// errNested says that a chain runs inside of another one.
var errNested = errors.New("a windowed host or an operator runs inside of another host, behind a resource or a nested processor: put operators directly into the host's processors list")

// fillRows makes the rows of messages that enter a chain. What an operator on its
// own has said of a message holds on: its event time, and that it is late or its
// step is over.
func fillRows(rows []windowing.Row, batch service.MessageBatch) {
	for i, m := range batch {
		rows[i] = windowing.Row{Entry: int32(i), Time: watermark.Unset, Message: m}
		c := carriedBy(m)
		if c != nil {
			rows[i].Time, rows[i].Flag = c.row.Time, c.row.Flag
		}
		if err := m.GetError(); err != nil {
			rows[i].Flag, rows[i].Err = windowing.Invalid, err
		} else if c != nil && c.inner {
			invalidate(&rows[i], errNested)
		}
	}
}

// foreign runs the processors between operators over rows.
type foreign struct {
	processors []*service.OwnedProcessor // by stage, nil for operators
	timed      []bool                    // a watermark stands before the stage
}

// run implements host.Config.Foreign. Rows travel as messages that carry them;
// several result batches become one.
func (f *foreign) run(ctx context.Context, stage int, rows []windowing.Row) ([]windowing.Row, error) {
	batch := make(service.MessageBatch, len(rows))
	for i := range rows {
		c := &carried{row: rows[i], inner: true}
		c.row.Message, c.row.Key, c.row.Args = nil, nil, nil
		batch[i] = carry(rows[i].Message.(*service.Message), c)
	}
	results, err := f.processors[stage].ProcessBatch(ctx, batch)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	var out []windowing.Row
	for _, result := range results {
		for _, m := range result {
			out = append(out, f.rowOf(stage, m))
		}
	}
	return out, nil
}

// rowOf makes the row of a message that comes out of a foreign stage.
func (f *foreign) rowOf(stage int, m *service.Message) windowing.Row {
	row := windowing.Row{Entry: -1, Time: watermark.Unset}
	c := carriedBy(m)
	if c != nil {
		row = c.row
		row.Err = nil
	}
	row.Message = m
	switch err := m.GetError(); {
	case err != nil:
		row.Err = err
		if row.Flag == windowing.Data {
			row.Flag = windowing.Invalid
		}
	case row.Flag == windowing.Invalid:
		row.Flag = windowing.Invalid // a mended error does not bring the row back: its step is over
	case c == nil && f.timed[stage]:
		invalidate(&row, errLostTime)
	}
	return row
}
