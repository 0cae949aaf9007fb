package expr

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"
)

// item is a value on its way from a source to what a field asks for.
type item struct {
	token token
	owned bool   // text is not part of a document: it may be kept as it is
	text  string // of number, integer, str, container and goUint
	int   int64
	float float64
	any   any // of goTime and goContainer; of a null that is nil bytes
}

// set takes over a Go value as Bloblang hands them out.
func (it *item) set(v any) error {
	it.owned = true
	switch t := v.(type) {
	case nil:
		it.token = null
	case string:
		return it.setText(t)
	case json.Number:
		return it.setNumber(string(t))
	case map[string]any, []any:
		it.token, it.any = goContainer, v
	case bool:
		it.token = boolFalse
		if t {
			it.token = boolTrue
		}
	case []byte:
		if t == nil { // the key of a Kafka record that has none; JSON has it as null too
			it.token, it.any = null, t
			return nil
		}
		return it.setText(string(t))
	case time.Time:
		it.token, it.any = goTime, t
	default:
		return it.setGoNumber(v)
	}
	return nil
}

func (it *item) setText(text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("the text %.40q is not valid UTF-8, encode it first, for example with .encode(\"hex\"): %w", text, ErrValue)
	}
	it.token, it.text = str, text
	return nil
}

// setNumber takes the text of a JSON number, and nothing else that strconv would
// take for one.
func (it *item) setNumber(text string) error {
	end, whole := scanNumber(unsafe.Slice(unsafe.StringData(text), len(text)), 0)
	if end != len(text) {
		return fmt.Errorf("%.40q is no number: %w", text, ErrValue)
	}
	if it.token, it.text = number, text; whole {
		it.token = integer
	}
	return nil
}

func (it *item) setGoNumber(v any) error {
	it.token = goInt
	switch t := v.(type) {
	case int64:
		it.int = t
	case float64:
		return it.setFloat(t)
	case int:
		it.int = int64(t)
	case uint64:
		it.setUint(t)
	case int32:
		it.int = int64(t)
	case float32:
		return it.setFloat(float64(t))
	case uint32:
		it.int = int64(t)
	case int16:
		it.int = int64(t)
	case uint16:
		it.int = int64(t)
	case int8:
		it.int = int64(t)
	case uint8:
		it.int = int64(t)
	case uint:
		it.setUint(uint64(t))
	default:
		return fmt.Errorf("a %T is no value: %w", v, ErrValue)
	}
	return nil
}

func (it *item) setUint(u uint64) {
	if it.int = int64(u); u > math.MaxInt64 {
		it.token, it.text = goUint, strconv.FormatUint(u, 10)
	}
}

func (it *item) setFloat(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("%v is no value, leave it out or replace it by null: %w", f, ErrValue)
	}
	it.token, it.float = goFloat, f
	return nil
}

// describe shows the item in an error.
func (it *item) describe() string {
	switch it.token {
	case none, null:
		return "null or missing"
	case boolTrue:
		return "true"
	case boolFalse:
		return "false"
	case number, integer, goUint:
		return fmt.Sprintf("the number %.40s", it.text)
	case str:
		return fmt.Sprintf("the text %.40q", it.text)
	case goInt:
		return fmt.Sprintf("the number %d", it.int)
	case goFloat:
		return fmt.Sprintf("the number %v", it.float)
	case goTime:
		return "a timestamp"
	}
	return "an object or a list"
}
