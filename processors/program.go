package processors

import (
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// reader fills a row with what one stage needs of it.
type reader interface {
	// read fills row from message i of the frame. An error makes the row invalid.
	read(s *scratch, i int, row *windowing.Row) error
}

// compiler makes the reader of a stage, with its expressions added to set.
type compiler func(set *expr.Set) (reader, error)

// program evaluates the expressions of stages that see the same messages, in one
// pass over each message. It may be used by several goroutines.
type program struct {
	set     *expr.Set
	readers []reader
	pool    sync.Pool // of *scratch
}

// scratch is what one evaluation works with.
type scratch struct {
	expr.Frame
	batch service.MessageBatch
	at    []int // rows of the batch
	keys  []byte
	args  []agg.Value
	names partitionNames
}

func newProgram(compilers ...compiler) (*program, error) {
	p := &program{set: expr.NewSet()}
	p.pool.New = func() any { return &scratch{} }
	for _, compile := range compilers {
		r, err := compile(p.set)
		if err != nil {
			return nil, err
		}
		p.readers = append(p.readers, r)
	}
	return p, nil
}

// extract evaluates the program over the rows that take part.
func (p *program) extract(rows []windowing.Row) {
	s := p.pool.Get().(*scratch)
	s.batch, s.at = s.batch[:0], s.at[:0]
	// Rows keep slices of these beyond the call: they are not used again.
	s.keys, s.args = make([]byte, 0, len(s.keys)+len(s.keys)/4), nil
	for i := range rows {
		if rows[i].Flag == windowing.Data {
			s.batch = append(s.batch, rows[i].Message.(*service.Message))
			s.at = append(s.at, i)
		}
	}
	p.set.Eval(s.batch, &s.Frame)
	for i, at := range s.at {
		p.extractRow(s, i, &rows[at])
	}
	s.Frame.Reset()
	clear(s.batch)
	p.pool.Put(s)
}

func (p *program) extractRow(s *scratch, i int, row *windowing.Row) {
	if err := s.batch[i].GetError(); err != nil {
		invalidate(row, err)
		return
	}
	for stage, r := range p.readers {
		switch err := r.read(s, i, row); {
		case err == nil:
		case stage == 0:
			invalidate(row, err)
			return
		default: // the stages before it take the row as it is
			row.Err, row.Fails = err, int16(stage)
			return
		}
	}
}

// invalidate takes a row out of the chain's work; its message carries the error.
func invalidate(row *windowing.Row, err error) {
	row.Flag, row.Err = windowing.Invalid, err
	row.Message.(*service.Message).SetError(err)
}

// room gives the arguments of a row, out of one allocation for the batch.
func (s *scratch) room(n int) []agg.Value {
	if len(s.args)+n > cap(s.args) {
		s.args = make([]agg.Value, 0, max(n*max(len(s.at), 1), n))
	}
	s.args = s.args[:len(s.args)+n]
	return s.args[len(s.args)-n : len(s.args) : len(s.args)]
}
