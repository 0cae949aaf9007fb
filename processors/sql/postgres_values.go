package sql

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// values gives the arguments as they are sent: as text, which the server reads as
// the type of the placeholder, so that no digit is lost and the server says what
// does not fit. Bytes for a bytea stay bytes.
func (r *postgresRun) values(c *call) ([]any, error) {
	oids := r.oids[c.stmt]
	if oids != nil && len(oids) != len(c.args) {
		return nil, explained(ofItsRow(fmt.Errorf("%d values for %d placeholders", len(c.args), len(oids))),
			[]string{c.stmt.fields, fieldArgs}, "give a value for each")
	}
	args := make([]any, len(c.args))
	for i, v := range c.args {
		oid := uint32(0)
		if oids != nil {
			oid = oids[i]
		}
		var err error
		if args[i], err = (postgresTypes{r.conn.TypeMap()}).value(oid, v); err != nil {
			return nil, explained(ofItsRow(err), []string{c.stmt.fields, c.argument(i)}, "")
		}
	}
	return args, nil
}

// postgresTypes are the types that a connection knows.
type postgresTypes struct{ *pgtype.Map }

// value is one argument: nil, string, or []byte for a bytea. An oid of 0 is an
// unknown type.
func (t postgresTypes) value(oid uint32, v any) (any, error) {
	v, err := plain(v)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case json.Number:
		if n, ok := integral(v); ok && integers[oid] {
			return strconv.FormatInt(n, 10), nil
		}
		return string(v), nil
	case time.Time:
		return rfc3339(v), nil
	case []byte:
		if oid == pgtype.ByteaOID || oid == 0 {
			return v, nil
		}
		return string(v), nil
	case map[string]any:
		return asJSON(v)
	case []any:
		if known, ok := t.TypeForOID(oid); ok {
			if array, ok := known.Codec.(*pgtype.ArrayCodec); ok {
				return t.array(array.ElementType.OID, v)
			}
		}
		return asJSON(v)
	}
	return v, nil
}

var integers = map[uint32]bool{pgtype.Int2OID: true, pgtype.Int4OID: true, pgtype.Int8OID: true, pgtype.OIDOID: true}

// array is the text of an array: https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
func (t postgresTypes) array(element uint32, values []any) (string, error) {
	var text strings.Builder
	text.WriteByte('{')
	for i, v := range values {
		if i > 0 {
			text.WriteByte(',')
		}
		if inner, ok := v.([]any); ok && element != pgtype.JSONOID && element != pgtype.JSONBOID {
			part, err := t.array(element, inner)
			if err != nil {
				return "", err
			}
			text.WriteString(part)
			continue
		}
		sent, err := t.value(element, v)
		if err != nil {
			return "", err
		}
		switch sent := sent.(type) {
		case nil:
			text.WriteString("NULL")
		case []byte:
			text.WriteString(quoted(fmt.Sprintf(`\x%x`, sent)))
		default:
			text.WriteString(quoted(sent.(string)))
		}
	}
	text.WriteByte('}')
	return text.String(), nil
}

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func quoted(text string) string { return `"` + quoter.Replace(text) + `"` }
