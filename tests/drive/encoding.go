package drive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// Encoding is how the rows of a test become messages.
type Encoding struct {
	Name    string
	Front   []json.RawMessage // processors before those of the test
	Raw     bool              // the payload reaches the operators as the bytes of the test
	message func(raw json.RawMessage) *service.Message
}

// The encodings. Lines are read from their bytes, Structured rows carry Go's own
// numbers, Mapped ones come out of a mapping and carry JSON numbers.
var (
	Lines      = Encoding{Name: "lines", Raw: true, message: plain}
	Structured = Encoding{Name: "structured", message: structured}
	Mapped     = Encoding{Name: "mapped", message: plain, Front: []json.RawMessage{json.RawMessage(`{"mapping": "root = this"}`)}}
)

// Encodings are all of them.
func Encodings() []Encoding { return []Encoding{Lines, Structured, Mapped} }

// Message makes the message of a row. A row {"_raw": text} is a payload of that
// text, byte for byte.
func (e Encoding) Message(raw json.RawMessage) *service.Message {
	if text, ok := rawText(raw); ok {
		return service.NewMessage([]byte(text))
	}
	return e.message(raw)
}

func rawText(raw json.RawMessage) (text string, ok bool) {
	if !bytes.Contains(raw, []byte(`"_raw"`)) {
		return "", false
	}
	var row map[string]string
	if err := json.Unmarshal(raw, &row); err != nil {
		return "", false
	}
	text, ok = row["_raw"]
	return text, ok
}

// Payload is what the message of a row carries.
func Payload(raw json.RawMessage) []byte {
	if text, ok := rawText(raw); ok {
		return []byte(text)
	}
	return raw
}

func plain(raw json.RawMessage) *service.Message {
	return service.NewMessage(append([]byte(nil), raw...))
}

func structured(raw json.RawMessage) *service.Message {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		panic(fmt.Sprintf("row %s: %v", raw, err))
	}
	msg := service.NewMessage(nil)
	msg.SetStructuredMut(native(value))
	return msg
}

// native turns JSON numbers into int64 where they are whole and written so, else
// into float64.
func native(value any) any {
	switch v := value.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			if n, err := v.Int64(); err == nil {
				return n
			}
		}
		f, err := v.Float64()
		if err != nil {
			panic(err)
		}
		return f
	case map[string]any:
		for k, x := range v {
			v[k] = native(x)
		}
	case []any:
		for i, x := range v {
			v[i] = native(x)
		}
	}
	return value
}

// SameJSON compares two payloads as JSON with exact numbers, or as bytes where
// they are none.
func SameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, okA := canonical(a)
	y, okB := canonical(b)
	return okA && okB && x == y
}

func canonical(data []byte) (string, bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil || dec.More() {
		return "", false
	}
	out, err := json.Marshal(native(value))
	return string(out), err == nil
}
