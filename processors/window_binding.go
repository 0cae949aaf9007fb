package processors

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
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
			slot, err := set.Value("group_by."+g.Name, g.Expr)
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
		if err := s.Err(i, slot); err != nil {
			return err
		}
		s.keys = s.Value(i, slot).AppendKey(s.keys)
	}
	row.Key = s.keys[from:len(s.keys):len(s.keys)]
	row.Args = s.room(len(r.args))
	for j, slot := range r.args {
		if err := s.Err(i, slot); err != nil {
			return err
		}
		row.Args[j] = s.Value(i, slot)
	}
	return r.layout.Check(row)
}

// windowBinding renders the rows of an aggregating stage.
type windowBinding struct {
	*program
	failing
	start, end []byte // `{"window_start":"` and `","window_end":"`
	groups     [][]byte
	fields     [][]byte // `,"name":`
}

func newWindowBinding(p *program, groups []windowing.GroupField, aggregates []windowing.Aggregate) *windowBinding {
	b := &windowBinding{program: p, start: []byte(`{"window_start":"`), end: []byte(`","window_end":"`)}
	for _, g := range groups {
		b.groups = append(b.groups, jsonField(g.Name))
	}
	for _, a := range aggregates {
		b.fields = append(b.fields, jsonField(a.Name))
	}
	return b
}

// jsonField is a name as it stands in the middle of a JSON object.
func jsonField(name string) []byte {
	return append(agg.String(name).AppendJSON([]byte{','}), ':')
}

// Extract implements windowing.Binding.
func (b *windowBinding) Extract(rows []windowing.Row) { b.extract(rows) }

// Render implements windowing.Binding: a JSON object of the bounds, the groups
// and the aggregates.
func (b *windowBinding) Render(res *windowing.Result) windowing.Message {
	doc := make([]byte, 0, 256)
	doc = res.Start.AppendRFC3339(append(doc, b.start...))
	doc = res.End.AppendRFC3339(append(doc, b.end...))
	doc = append(doc, '"')
	rest := res.Key
	for _, name := range b.groups {
		v, tail, err := agg.DecodeKey(rest)
		if err != nil { // the operator made the key from values: it cannot be damaged
			panic(fmt.Sprintf("processors: group key %x: %v", res.Key, err))
		}
		doc, rest = v.AppendJSON(append(doc, name...)), tail
	}
	for i, name := range b.fields {
		doc = res.Values[i].AppendJSON(append(doc, name...))
	}
	return service.NewMessage(append(doc, '}'))
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
