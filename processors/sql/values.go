package sql

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// list evaluates a mapping that gives the arguments of a statement.
func list(mapping *service.MessageBatchBloblangExecutor, field string, i int) ([]any, error) {
	v, err := evaluate(mapping, field, i)
	if err != nil {
		return nil, err
	}
	values, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s gives %s: it must give a list, such as root = [ this.id, this.total ]", field, shown(v))
	}
	return values, nil
}

// truth evaluates a mapping that gives yes or no.
func truth(mapping *service.MessageBatchBloblangExecutor, field string, i int) (bool, error) {
	v, err := evaluate(mapping, field, i)
	if err != nil {
		return false, err
	}
	yes, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%s gives %s: it must give true or false", field, shown(v))
	}
	return yes, nil
}

func evaluate(mapping *service.MessageBatchBloblangExecutor, field string, i int) (any, error) {
	m, err := mapping.Query(i)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	if m == nil {
		return nil, fmt.Errorf("%s deletes the message: leave it out in a processor before the output", field)
	}
	v, err := m.AsStructured()
	if err != nil {
		return nil, fmt.Errorf("%s gives no value: %w", field, err)
	}
	return v, nil
}

// shown is a value for a message.
func shown(v any) string {
	text := fmt.Sprintf("%v", v)
	switch v := v.(type) {
	case string:
		text = strconv.Quote(v)
	case []byte:
		text = fmt.Sprintf("%d bytes", len(v))
	case map[string]any, []any:
		if b, err := json.Marshal(v); err == nil {
			text = string(b)
		}
	case nil:
		text = "null"
	}
	if r := []rune(text); len(r) > 80 {
		return string(r[:80]) + "..."
	}
	return text
}

var errNoSQLValue = errors.New("has no counterpart in SQL")

// plain reduces what Bloblang knows to nil, bool, int64, json.Number (whatever is
// a number and no int64), string, []byte, time.Time, map[string]any and []any.
func plain(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, int64, string, []byte, time.Time, map[string]any, []any:
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case uint64:
		return number(strconv.FormatUint(v, 10)), nil
	case float64:
		return float(v), nil
	case float32:
		return float(float64(v)), nil
	case json.Number:
		return number(string(v)), nil
	}
	return nil, fmt.Errorf("a value of the kind %T %w: make it a text, a number, an object or a list", v, errNoSQLValue)
}

// number is an int64 where that keeps every digit.
func number(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return json.Number(text)
}

// exact is the largest integer up to which a float64 has every integer.
const exact = 1 << 53

func float(f float64) any {
	switch {
	case math.IsNaN(f):
		return json.Number("NaN")
	case math.IsInf(f, 0):
		return json.Number(strings.TrimPrefix(strconv.FormatFloat(f, 'f', -1, 64), "+") + "inity")
	case f == math.Trunc(f) && math.Abs(f) <= exact:
		return int64(f)
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

// integral gives the integer that 1.0 and 1e3 stand for.
func integral(n json.Number) (int64, bool) {
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > exact {
		return 0, false
	}
	return int64(f), true
}

// asJSON is the text of an object or a list, numbers as they came.
func asJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("%s cannot be written as JSON: %w", shown(v), err)
	}
	return string(b), nil
}

// rfc3339 is a time as text, in UTC, with as many decimals as it has.
func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
