package agg

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Sentinels of FromAny and ParseJSON.
var (
	// ErrUTF8: a text has bytes that are not UTF-8. Rendered as JSON, different
	// texts would become the same one.
	ErrUTF8 = errors.New("text is not valid UTF-8: encode it first, for example with .encode(\"hex\")")
	// ErrNotFinite: NaN or an infinity, which JSON cannot write.
	ErrNotFinite = errors.New("NaN or an infinity is no JSON value: leave it out or replace it by null")
	// ErrDigits: an integer beyond int64 that is no float either. As the nearest float
	// it would fall together with its neighbours.
	ErrDigits = errors.New("64 bits cannot hold the integer: .string() gives its text, .number() the nearest float")
	// ErrNoValue: the expression gave something that is no value.
	ErrNoValue = errors.New("not a value: allowed are null, bools, numbers, texts, timestamps, objects and lists")
)

// AppendJSON appends v as JSON: integers with all digits, floats in their
// shortest form (as encoding/json, and -0 as 0), 1.0 as 1, texts without HTML
// escaping and with invalid UTF-8 replaced. NaN and infinities, which have no
// JSON form, give null.
func (v Value) AppendJSON(b []byte) []byte {
	switch v.kind {
	case KindBool:
		return strconv.AppendBool(b, v.bits != 0)
	case KindInt:
		return strconv.AppendInt(b, int64(v.bits), 10)
	case KindFloat:
		return appendFloat(b, math.Float64frombits(v.bits))
	case KindString:
		return appendText(b, v.text)
	case KindJSON:
		return append(b, v.text...)
	}
	return append(b, "null"...)
}

// appendFloat writes a float as ECMAScript and RFC 8785 do.
func appendFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	if f == 0 {
		return append(b, '0')
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	b = strconv.AppendFloat(b, f, 'e', -1, 64)
	if n := len(b); n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 to e-9
		b = b[:n-1]
	}
	return b
}

const hexDigits = "0123456789abcdef"

// appendText writes a JSON string: quotes, backslashes and control characters
// escaped, bytes that are not UTF-8 as U+FFFD.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[done:i]...), "\ufffd"...)
				done = i + 1
			}
			i += size
			continue
		}
		b = appendEscape(append(b, s[done:i]...), c)
		i++
		done = i
	}
	return append(append(b, s[done:]...), '"')
}

func appendEscape(b []byte, c byte) []byte {
	const short = "\"\"\\\\\bb\ff\nn\rr\tt"
	for i := 0; i < len(short); i += 2 {
		if short[i] == c {
			return append(b, '\\', short[i+1])
		}
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// Any is v in the types that Bloblang knows: nil, bool, int64, float64, string,
// and map[string]any or []any with json.Number inside.
func (v Value) Any() any {
	switch v.kind {
	case KindBool:
		return v.bits != 0
	case KindInt:
		return int64(v.bits)
	case KindFloat:
		return math.Float64frombits(v.bits)
	case KindString:
		return v.text
	case KindJSON:
		d := json.NewDecoder(strings.NewReader(v.text))
		d.UseNumber()
		var out any
		if d.Decode(&out) == nil {
			return out
		}
	}
	return nil
}

// ParseJSON is the value of a JSON text. Numbers are read as FromAny takes them:
// integers exactly, anything else as the nearest float64. Of a key that is there twice
// the last one counts.
func ParseJSON(text string) (Value, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return Value{}, fmt.Errorf("read JSON value: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Value{}, fmt.Errorf("read JSON value: text after its end")
	}
	return FromAny(out)
}

// FromAny is the value of what a Bloblang query hands out. An integer beyond int64
// becomes the float that it is the shortest text of, bytes a text, a timestamp its RFC
// 3339 text in UTC, objects and lists canonical JSON, in which larger integers keep
// their digits. The errors are ErrUTF8, ErrNotFinite (inside objects and lists only),
// ErrDigits (outside of them only) and ErrNoValue, wrapped with the value.
func FromAny(x any) (Value, error) {
	switch t := x.(type) {
	case nil:
		return Null(), nil
	case bool:
		return Bool(t), nil
	case string:
		return fromText(t)
	case []byte:
		return fromText(string(t))
	case time.Time:
		return String(t.UTC().Format(time.RFC3339Nano)), nil
	case json.Number:
		return fromNumber(t)
	case map[string]any, []any:
		b, err := AppendAny(nil, t)
		return JSON(string(b)), err
	}
	return fromGoNumber(x)
}

func fromGoNumber(x any) (Value, error) {
	switch t := x.(type) {
	case float64:
		return Float(t), nil
	case float32:
		return Float(float64(t)), nil
	case int:
		return Int(int64(t)), nil
	case int64:
		return Int(t), nil
	case int32:
		return Int(int64(t)), nil
	case int16:
		return Int(int64(t)), nil
	case int8:
		return Int(int64(t)), nil
	case uint:
		return fromNumber(json.Number(strconv.FormatUint(uint64(t), 10)))
	case uint64:
		return fromNumber(json.Number(strconv.FormatUint(t, 10)))
	case uint32:
		return Int(int64(t)), nil
	case uint16:
		return Int(int64(t)), nil
	case uint8:
		return Int(int64(t)), nil
	}
	return Value{}, fmt.Errorf("%T: %w", x, ErrNoValue)
}

func fromText(s string) (Value, error) {
	if !utf8.ValidString(s) {
		return Value{}, fmt.Errorf("%.40q: %w", s, ErrUTF8)
	}
	return String(s), nil
}

func fromNumber(n json.Number) (Value, error) {
	if i, err := n.Int64(); err == nil {
		return Int(i), nil
	}
	f, err := n.Float64()
	if err != nil {
		return Value{}, fmt.Errorf("number %.40s: %w", n, ErrNotFinite)
	}
	if !strings.ContainsAny(n.String(), ".eE") && strconv.FormatFloat(f, 'f', -1, 64) != n.String() {
		return Value{}, fmt.Errorf("number %.40s: %w", n, ErrDigits)
	}
	return Float(f), nil
}

// AppendAny appends what a Bloblang query hands out as JSON in which equal values have
// equal bytes, integers of any size with all their digits. The errors are those of
// FromAny apart from ErrDigits; NaN and infinities are ErrNotFinite.
func AppendAny(b []byte, x any) ([]byte, error) {
	switch t := x.(type) {
	case []any:
		b = append(b, '[')
		for i, item := range t {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = AppendAny(b, item); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		return appendObject(b, t)
	}
	v, err := FromAny(x)
	switch {
	case errors.Is(err, ErrDigits): // a JSON number or a uint64, which have one text
		return fmt.Append(b, x), nil
	case err != nil:
		return nil, err
	}
	if !v.IsFinite() {
		return nil, fmt.Errorf("%v: %w", v.AsFloat(), ErrNotFinite)
	}
	return v.Canonical().AppendJSON(b), nil
}

func appendObject(b []byte, object map[string]any) ([]byte, error) {
	keys := make([]string, 0, len(object))
	for k := range object {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b = append(b, '{')
	for i, k := range keys {
		if !utf8.ValidString(k) {
			return nil, fmt.Errorf("object key %.40q: %w", k, ErrUTF8)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, k), ':')
		var err error
		if b, err = AppendAny(b, object[k]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}
