package expr

import (
	"fmt"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
)

// source is where the value of an expression comes from.
type source interface {
	// load puts the value on the row of the Frame into it. A Frame calls it once
	// for each row and cell; the item is used up before the next load.
	load(f *Frame, row int, it *item) error
}

// constant is the same on every row.
type constant struct{ it item }

func (c *constant) load(_ *Frame, _ int, it *item) error {
	*it = c.it
	return nil
}

// metadata is the value of a metadata key, null if there is none.
type metadata string

func (key metadata) load(f *Frame, row int, it *item) error {
	v, ok := f.batch[row].MetaGetMut(string(key))
	if !ok {
		v = nil
	}
	return it.set(v)
}

// path is a field of the document.
type path struct {
	steps []segment
	leaf  int
}

func (p *path) load(f *Frame, row int, it *item) error {
	doc, err := f.document(row)
	if err != nil {
		return err
	}
	if doc != nil {
		f.cut(doc, f.spans[p.leaf], it)
		return nil
	}
	root, err := f.batch[row].AsStructured()
	if err != nil { // cannot be: document saw it
		return err
	}
	return it.set(walk(root, p.steps))
}

// walk follows a path through a structured document as Bloblang does: a step
// that cannot be taken leads to null.
func walk(v any, steps []segment) any {
	for _, step := range steps {
		switch t := v.(type) {
		case map[string]any:
			v = t[step.key]
		case []any:
			if step.index < 0 || step.index >= len(t) {
				return nil
			}
			v = t[step.index]
		default:
			return nil
		}
	}
	return v
}

// mapping is any other expression. It gives {"v": value}.
type mapping struct {
	exec       *bloblang.Executor
	text       string
	index      int  // among those of the Set
	statements bool // a mapping rather than one expression
}

func (m *mapping) load(f *Frame, row int, it *item) error {
	if f.execs[m.index] == nil {
		f.execs[m.index] = f.batch.BloblangExecutor(m.exec)
	}
	if err := m.query(f.execs[m.index], row, it); err != nil {
		return err
	}
	return m.checkText(f, row)
}

// checkText refuses what Bloblang has read from a document that is not UTF-8. A
// structured form that was not there before says that it did read; a message
// that had one already is asked again without it.
func (m *mapping) checkText(f *Frame, row int) error {
	msg := f.batch[row]
	if f.rows[row] == raw || f.rows[row] == structured || !msg.HasStructured() {
		return nil
	}
	err := validText(msg)
	if err == nil {
		return nil
	}
	doc, _ := msg.AsBytes()
	fresh := msg.Copy()
	fresh.SetBytes(doc)
	batch := append(service.MessageBatch{}, f.batch...)
	batch[row] = fresh
	if _, again := batch.BloblangExecutor(m.exec).Query(row); again == nil && !fresh.HasStructured() {
		return nil
	}
	return err
}

func (m *mapping) query(exec *service.MessageBatchBloblangExecutor, row int, it *item) error {
	out, err := exec.Query(row)
	if err != nil {
		return m.failure(err)
	}
	v, err := out.AsStructured()
	if err != nil {
		return m.failure(err)
	}
	object, ok := v.(map[string]any)
	if !ok { // cannot be: the last thing in the mapping is an object literal
		return m.failure(fmt.Errorf("unexpected result %T", v))
	}
	return it.set(object["v"])
}

// failure drops what Bloblang says about the query around an expression.
func (m *mapping) failure(err error) error {
	text := err.Error()
	if !m.statements {
		text = strings.TrimPrefix(text, "failed assignment (line 1): ")
		text = strings.TrimPrefix(text, "failed to resolve 'v' value: ")
	}
	return fmt.Errorf("%.200s: %w: %s", m.text, ErrEvaluate, text)
}
