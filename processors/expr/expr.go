// Package expr evaluates the Bloblang expressions of a configuration over
// batches of messages into typed values.
//
// A plain path (`this.a.b`) over a message that still is raw bytes is read from
// the bytes: one pass over the document serves all paths of a Set, checks the
// whole document and builds nothing. Plain metadata (`@key`, `metadata("key")`),
// constants, and a path or metadata compared with a text or a number
// (`@kafka_topic == "orders"`, `this.status >= 500`) are read directly too. All
// else goes through Bloblang, and so does whatever the reader is not sure of: the
// answer is always Bloblang's.
//
// Nothing is evaluated before it is asked for. An expression that nobody asks
// about on a row costs nothing there and cannot fail there, which is how a row
// that is already invalid, late or of another source is spared.
//
// What an expression gives, by the method that added it:
//
//	         Value            Text             Bool   Int              Time
//	null     null             error            error  absent           error
//	bool     bool             its word         bool   error            error
//	number   Int or Float     as JSON writes   error  if an integer    in the unit
//	text     text             text             error  if decimal       RFC 3339
//	time     text, in UTC     text, in UTC     error  error            time
//	object   canonical JSON   error            error  error            error
//
// A missing field, deleted(), nothing() and a mapping that sets no root are
// null. NaN and the infinities are errors everywhere, and so are, as a Value,
// an integer beyond int64 that is no float64 either (different ones would become
// one) and a number beyond float64. The text of a number is the same for 1, 1.0
// and 1e0, and what stands in the document for numbers that are no Value.
package expr

import (
	"errors"
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// The phases in which an expression fails; errors wrap one of them.
var (
	// ErrCompile: the text is no Bloblang. Only the methods that add give it.
	ErrCompile = errors.New("not a Bloblang expression")
	// ErrDocument: the payload is not JSON or not UTF-8, and `this` was needed.
	ErrDocument = errors.New("the payload cannot be read")
	// ErrEvaluate: Bloblang failed on the message.
	ErrEvaluate = errors.New("the expression failed")
	// ErrValue: the expression gave something that its field cannot use.
	ErrValue = errors.New("the value cannot be used")
)

// Set is a set of compiled expressions that are evaluated together. It must not
// change after its first Eval; then any number of goroutines may use it.
type Set struct {
	cells  []cell
	labels []label
	paths  tree
	execs  int // compiled mappings
}

// Slot names an expression of a Set. It is good for that Set only.
type Slot struct{ cell, label int32 }

// cell is an expression as a kind of value. Fields that want the same of the
// same text share one.
type cell struct {
	key    cellKey
	source source
	leaf   int // of a plain path, else noLeaf
}

type cellKey struct {
	kind kind
	unit watermark.Unit // Time only
	text string
}

// label is a field in its own words.
type label struct {
	field string
	null  error // there is only one way to be null
}

// NewSet gives a Set without expressions.
func NewSet() *Set { return &Set{} }

// Value adds an expression for a value of any kind: a group key, an argument of
// an aggregate. field names it in errors.
func (s *Set) Value(field, text string) (Slot, error) {
	return s.add(field, cellKey{kind: asValue, text: text})
}

// Text adds an expression that is compared as text, as a partition is: the
// number 1 and the text "1" are the same.
func (s *Set) Text(field, text string) (Slot, error) {
	return s.add(field, cellKey{kind: asText, text: text})
}

// Key adds an expression for a value that is encoded at once: a text of it may
// share the memory of the message, and is good until the next Eval or Reset.
func (s *Set) Key(field, text string) (Slot, error) {
	return s.add(field, cellKey{kind: asKey, text: text})
}

// Bool adds a condition.
func (s *Set) Bool(field, text string) (Slot, error) {
	return s.add(field, cellKey{kind: asBool, text: text})
}

// Int adds an expression for an int64, as an offset is. Decimal text counts as
// its number.
func (s *Set) Int(field, text string) (Slot, error) {
	return s.add(field, cellKey{kind: asInt, text: text})
}

// Time adds an expression for an event time: an RFC 3339 text, a Bloblang
// timestamp, or a number in unit. Numbers are read as decimals, so that no digit
// is lost; a float counts as its shortest decimal text.
func (s *Set) Time(field, text string, unit watermark.Unit) (Slot, error) {
	return s.add(field, cellKey{kind: asTime, unit: unit, text: text})
}

func (s *Set) add(field string, key cellKey) (Slot, error) {
	null := fmt.Errorf("%s: %.200s is null or missing, allowed are %s: %w", field, key.text, allowed[key.kind], ErrValue)
	slot := Slot{label: int32(len(s.labels))}
	for ; int(slot.cell) < len(s.cells) && s.cells[slot.cell].key != key; slot.cell++ {
	}
	if int(slot.cell) == len(s.cells) {
		source, err := s.compile(key.text)
		if err != nil {
			return Slot{}, fmt.Errorf("%s: %w", field, err)
		}
		leaf := noLeaf
		if p, ok := source.(*path); ok {
			leaf = p.leaf
		}
		s.cells = append(s.cells, cell{key: key, source: source, leaf: leaf})
	}
	s.labels = append(s.labels, label{field: field, null: null})
	return slot, nil
}

// Eval makes f ready to answer for batch. The messages must not change while f
// is asked about them, except that their structured form may come to be cached.
// Eval cannot fail: errors belong to rows and slots.
func (s *Set) Eval(batch service.MessageBatch, f *Frame) { f.load(s, batch) }

// kind is the type that a field asks for.
type kind uint8

const (
	asValue kind = iota
	asText
	asBool
	asInt
	asTime
	asKey
)

const allowedValue = "null, bools, finite numbers, texts, timestamps, objects and lists"

// allowed says what each kind takes, for errors.
var allowed = [...]string{
	asValue: allowedValue,
	asText:  "texts, numbers, bools and timestamps (to give null a name: .or(\"none\"))",
	asBool:  "true and false (to treat null as false: .or(false))",
	asInt:   "null, integers of 64 bits and their decimal text",
	asKey:   allowedValue,
	asTime:  "RFC 3339 texts such as \"2023-11-14T22:13:20Z\", timestamps, and numbers in the field's unit",
}

// converts says how each kind is made of an item. errNull stands for a null that
// the kind does not take.
var converts = [...]func(f *Frame, c *cell, it *item) (agg.Value, error){
	asValue: toValue,
	asText:  toText,
	asBool:  toBool,
	asInt:   toInt,
	asTime:  toTime,
	asKey:   toKey,
}
