package expr

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// Frame answers for the expressions of a Set on one batch after the other. Its
// zero value is ready for Set.Eval. It belongs to one goroutine, which should
// use it again and again: it learns what documents look like. What it hands out
// shares no memory with the messages and may be kept, unless it was added with
// Set.Key.
//
// It holds the answers for one row. Ask all about a row before the next one: to
// come back to a row is to evaluate its expressions again.
type Frame struct {
	set   *Set
	batch service.MessageBatch
	rows  []rowState
	execs []*service.MessageBatchBloblangExecutor

	row    int         // that all below is about, -1: none yet
	doc    []byte      // if it is raw and was read
	spans  []span      // its leaves
	states []state     // its cells
	values []agg.Value // likewise; a time is an Int
	errs   map[int]error

	reader  reader
	times   watermark.RFC3339Reader
	recent  []recent // by cell: many texts of one do not push out few of another
	texts   *recent  // those of the cell being evaluated
	item    item     // the one being loaded; here, as it would escape elsewhere
	scratch []byte
}

// rowState says how the document of a row is read.
type rowState uint8

const (
	unread rowState = iota
	raw             // the reader accepts it
	structured
	unusable // errs has why, under noDocument
)

// state says what is known of a cell.
type state uint8

const (
	pending state = iota
	valid
	isNull // and must not be
	failed // errs has why, under its index
)

// noDocument is the key in errs of a row's own error.
func noDocument(row int) int { return -1 - row }

// load forgets the last batch and takes the next one.
func (f *Frame) load(s *Set, batch service.MessageBatch) {
	f.Reset()
	if f.set != s {
		f.reader.reset(&s.paths)
		f.recent = zeroed(f.recent, len(s.cells))
	}
	f.set, f.batch, f.row = s, batch, -1
	f.rows = zeroed(f.rows, len(batch))
	f.execs = sized(f.execs, s.execs) // Reset has cleared it
	f.spans = sized(f.spans, s.paths.leaves)
	f.states = sized(f.states, len(s.cells))
	f.values = zeroed(f.values, len(s.cells))
}

func sized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

func zeroed[T any](s []T, n int) []T {
	s = sized(s, n)
	clear(s)
	return s
}

// Reset lets go of the batch and what came of it. Eval does it too: it is worth
// a call only when the next batch may be far away.
func (f *Frame) Reset() {
	clear(f.values)
	clear(f.errs)
	clear(f.execs)
	f.batch, f.doc, f.item = nil, nil, item{}
	f.reader.doc, f.reader.spans = nil, nil
}

// RowErr is the error that the message came with, else why its document cannot
// be read (ErrDocument) where some expression is a path into it. The document is
// read here if it was not before.
func (f *Frame) RowErr(row int) error {
	if err := f.batch[row].GetError(); err != nil {
		return err
	}
	if f.set.paths.leaves == 0 {
		return nil
	}
	if f.row != row {
		f.move(row)
	}
	_, err := f.document(row)
	return err
}

// DocumentErr is RowErr for a caller that needs the whole document, whether or not
// some expression is a path into it.
func (f *Frame) DocumentErr(row int) error {
	if err := f.RowErr(row); err != nil || f.set.paths.leaves > 0 {
		return err
	}
	return readable(f.batch[row])
}

// Get is the value of an expression and, where it has none, why: what Value and Err
// say. It is the cheapest way to ask for both, and to be used once for each row and
// expression. A time is an integer.
func (f *Frame) Get(row int, slot Slot) (agg.Value, error) {
	c := &f.set.cells[slot.cell]
	if f.row != row {
		f.move(row)
	}
	if c.leaf != noLeaf && f.states[slot.cell] == pending {
		if doc, err := f.document(row); err == nil && doc != nil {
			if v, ok := f.direct(c, slot.cell, doc, f.spans[c.leaf]); ok {
				return v, nil
			}
		}
	}
	return f.Value(row, slot), f.Err(row, slot)
}

// direct converts the plain scalars that most expressions give, without an item in
// between. What it gives is what converts would make of them.
func (f *Frame) direct(c *cell, at int32, doc []byte, s span) (v agg.Value, ok bool) {
	text := view(doc[s.start:s.end])
	switch kind := c.key.kind; {
	case s.token == str && s.escaped:
	case s.token == str && kind == asTime:
		t, err := f.times.Parse(text)
		return agg.Int(int64(t)), err == nil
	case s.token == str && kind == asKey:
		return agg.String(text), true
	case s.token == str && (kind == asValue || kind == asText):
		return agg.String(f.recent[at].keep(text)), true
	case s.token == integer && (kind == asValue || kind == asKey || kind == asInt):
		i, ok := parseInt(text)
		return agg.Int(i), ok
	case s.token == number && (kind == asValue || kind == asKey):
		float, ok := parseShort(text)
		return agg.Float(float), ok
	}
	return agg.Null(), false
}

// Err says why an expression has no value on a row, naming the field, the value
// and what is allowed. It wraps ErrDocument, ErrEvaluate or ErrValue.
func (f *Frame) Err(row int, slot Slot) error {
	at := f.at(row, slot)
	if f.states[at] == valid {
		return nil
	}
	return f.why(at, slot)
}

func (f *Frame) why(at int32, slot Slot) error {
	label := &f.set.labels[slot.label]
	if f.states[at] == isNull {
		return label.null
	}
	return fmt.Errorf("%s: %w", label.field, f.errs[int(at)])
}

// Value is the value of an expression added with Set.Value or Set.Key, null if
// there is an error.
func (f *Frame) Value(row int, slot Slot) agg.Value { return f.values[f.at(row, slot)] }

// Text is the value of an expression added with Set.Text, "" if there is an
// error.
func (f *Frame) Text(row int, slot Slot) string { return f.values[f.at(row, slot)].AsString() }

// Bool is the value of an expression added with Set.Bool, false if there is an
// error.
func (f *Frame) Bool(row int, slot Slot) bool { return f.values[f.at(row, slot)].AsBool() }

// Int is the value of an expression added with Set.Int; not ok if it is null or
// there is an error.
func (f *Frame) Int(row int, slot Slot) (i int64, ok bool) {
	v := f.values[f.at(row, slot)]
	return v.AsInt(), v.Kind() == agg.KindInt
}

// Time is the value of an expression added with Set.Time, watermark.Unset if
// there is an error.
func (f *Frame) Time(row int, slot Slot) watermark.Time {
	v := f.values[f.at(row, slot)]
	if v.Kind() != agg.KindInt {
		return watermark.Unset
	}
	return watermark.Time(v.AsInt())
}

// at is the index of a cell, which has been evaluated for the row then.
func (f *Frame) at(row int, slot Slot) int32 {
	if f.row != row || f.states[slot.cell] == pending {
		f.evaluate(row, slot.cell)
	}
	return slot.cell
}

// move forgets one row for another.
func (f *Frame) move(row int) {
	f.row, f.doc = row, nil
	clear(f.states)
}

func (f *Frame) evaluate(row int, at int32) {
	if f.row != row {
		f.move(row)
	}
	c, it := &f.set.cells[at], &f.item
	f.texts = &f.recent[at]
	var v agg.Value
	err := c.source.load(f, row, it)
	if err == nil {
		v, err = converts[c.key.kind](f, c, it)
	} else if errors.Is(err, ErrValue) {
		err = fmt.Errorf("%.200s: %w", c.key.text, err)
	}
	f.values[at] = v
	switch err {
	case nil:
		f.states[at] = valid
	case errNull:
		f.states[at] = isNull
	default:
		f.states[at] = failed
		f.fail(int(at), err)
	}
}

func (f *Frame) fail(at int, err error) {
	if f.errs == nil {
		f.errs = map[int]error{}
	}
	f.errs[at] = err
}

// document makes the document of the row readable. It gives the bytes where spans
// say what is where, nil where the message has a structured form to walk.
func (f *Frame) document(row int) (doc []byte, err error) {
	if f.doc == nil && f.rows[row] <= raw {
		f.open(row)
	}
	if f.rows[row] == unusable {
		return nil, f.errs[noDocument(row)]
	}
	return f.doc, nil
}

// open reads the document if the message is raw bytes still and the reader
// accepts them. A message with both forms is walked: that is cheaper, and its
// bytes may have been written from the structured form only to be looked at.
func (f *Frame) open(row int) {
	msg := f.batch[row]
	if exactNumbers && msg.HasBytes() && !msg.HasStructured() {
		doc, err := msg.AsBytes()
		if err == nil && f.reader.read(&f.set.paths, doc, f.spans) {
			f.rows[row], f.doc = raw, doc
			return
		}
	}
	f.rows[row] = structured
	if err := readable(msg); err != nil {
		f.rows[row] = unusable
		f.fail(noDocument(row), err)
	}
}

// exactNumbers says whether Bloblang keeps the text of numbers, as it does
// unless the environment says BENTHOS_USE_NUMBER=false. The reader does.
var exactNumbers = func() bool {
	v, err := service.NewMessage([]byte("1")).AsStructured()
	_, isFloat := v.(float64)
	return err == nil && !isFloat
}()

// readable asks Benthos whether a document is JSON. Where its bytes are still
// there they must be UTF-8: what Bloblang reads has U+FFFD for every bad byte,
// so that different keys would become one.
func readable(msg *service.Message) error {
	if err := validText(msg); err != nil {
		return err
	}
	if !msg.HasBytes() && !msg.HasStructured() {
		return fmt.Errorf("%w: it is empty", ErrDocument)
	}
	if _, err := msg.AsStructured(); err != nil {
		return fmt.Errorf("%w: it is not JSON: %w", ErrDocument, err)
	}
	return nil
}

func validText(msg *service.Message) error {
	if !msg.HasBytes() {
		return nil
	}
	doc, err := msg.AsBytes()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDocument, err)
	}
	if len(doc) == 0 {
		return fmt.Errorf("%w: it is empty", ErrDocument)
	}
	if !utf8.Valid(doc) {
		return fmt.Errorf("%w: it is not valid UTF-8", ErrDocument)
	}
	return nil
}

// cut makes an item of a stretch of a document.
func (f *Frame) cut(doc []byte, s span, it *item) {
	if it.token, it.owned = s.token, false; s.token < number {
		return
	}
	text := doc[s.start:s.end]
	if !s.escaped {
		it.text = view(text)
		return
	}
	f.scratch = unescape(f.scratch[:0], text)
	it.text, it.owned = f.texts.keep(view(f.scratch)), true
}

// keep gives the text of an item as a string that may be kept.
func (f *Frame) keep(it *item) string {
	if it.owned {
		return it.text
	}
	return f.texts.keep(it.text)
}
