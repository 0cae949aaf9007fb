package processors

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// windowReader fills Key and Args for an operator that aggregates.
type windowReader struct {
	groups []expr.Slot
	args   []expr.Slot
	layout *windowing.ArgLayout
}

// compileWindow makes the compiler of an aggregating stage.
func compileWindow(groups []windowing.GroupField, aggregates []windowing.Aggregate) compiler {
	layout := windowing.NewArgLayout(aggregates)
	return func(set *expr.Set) (reader, error) {
		r := &windowReader{layout: layout}
		for _, g := range groups {
			slot, err := set.Key("group_by."+g.Name, g.Expr)
			if err != nil {
				return nil, err
			}
			r.groups = append(r.groups, slot)
		}
		for _, text := range layout.Exprs() {
			slot, err := set.Value("aggregates", text)
			if err != nil {
				return nil, err
			}
			r.args = append(r.args, slot)
		}
		return r, nil
	}
}

func (r *windowReader) read(s *scratch, i int, row *windowing.Row) error {
	from := len(s.keys)
	for _, slot := range r.groups {
		v, err := s.Get(i, slot)
		if err != nil {
			return err
		}
		s.keys = v.AppendKey(s.keys)
	}
	row.Key = s.keys[from:len(s.keys):len(s.keys)]
	row.Args = s.room(len(r.args))
	var failed map[int]error
	for j, slot := range r.args {
		v, err := s.Get(i, slot)
		if err != nil {
			if failed == nil {
				failed = map[int]error{}
			}
			failed[j] = err
		}
		row.Args[j] = v // null where it failed
	}
	return r.layout.CheckEvaluated(row, failed)
}

// windowBinding renders the rows of an aggregating stage.
type windowBinding struct {
	*program
	failing
	rows *rowWriter
	// leaves says that the rows leave the chain: they need not be messages yet.
	leaves bool
}

func newWindowBinding(p *program, groups []windowing.GroupField, aggregates []windowing.Aggregate) *windowBinding {
	return &windowBinding{program: p, rows: newRowWriter(groups, aggregates)}
}

// Extract implements windowing.Binding.
func (b *windowBinding) Extract(rows []windowing.Row) { b.extract(rows) }

// Render implements windowing.Binding.
func (b *windowBinding) Render(res *windowing.Result) windowing.Message {
	seen, _ := res.Message.(*service.Message) // a condition has looked at it
	switch {
	case b.leaves && seen != nil:
		return b.rows.room.add(payload(seen))
	case b.leaves:
		return b.rows.room.add(b.rows.write(res))
	case seen != nil:
		return seen
	}
	return b.rows.message(res)
}

// watermarkBinding evaluates a watermark; it renders nothing.
type watermarkBinding struct {
	*program
	failing
}

// Extract implements windowing.Binding.
func (b watermarkBinding) Extract(rows []windowing.Row) { b.extract(rows) }

// Render implements windowing.Binding. A watermark has no results.
func (watermarkBinding) Render(*windowing.Result) windowing.Message {
	panic("processors: a watermark emits no rows of its own")
}

// failing puts errors on messages.
type failing struct{}

// Fail implements windowing.Binding.
func (failing) Fail(m windowing.Message, err error) windowing.Message {
	m.(*service.Message).SetError(err)
	return m
}
