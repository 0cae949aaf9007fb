package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

// What a value of Bloblang becomes in SQLite, by the affinity of the column.
func TestValuesInSqlite(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE t (b BLOB, i INTEGER, x TEXT)")
	w := d.output(nameInsert, `
table: t
columns: [ b, i, x ]
args_mapping: |
  let v = match {
    this == "time" => "2026-03-02T09:00:00.123456789+01:00".ts_parse("2006-01-02T15:04:05.999999999Z07:00"),
    this == "bytes" => "ab".bytes(),
    this == "meta" => @n,
    this == "third" => 1/3,
    this == "sum" => 9007199254740992 + 1,
    _ => this,
  }
  root = [ $v, $v, $v ]
`)
	cases := []struct{ payload, blob, integer, text string }{
		{"null", "null|<nil>", "null|<nil>", "null|<nil>"},
		{"true", "integer|1", "integer|1", "text|1"},
		{"false", "integer|0", "integer|0", "text|0"},
		{"0", "integer|0", "integer|0", "text|0"},
		{"-0", "integer|0", "integer|0", "text|0"},
		{"9007199254740993", "integer|9007199254740993", "integer|9007199254740993", "text|9007199254740993"},
		{"9223372036854775807", "integer|9223372036854775807", "integer|9223372036854775807", "text|9223372036854775807"},
		{"-9223372036854775808", "integer|-9223372036854775808", "integer|-9223372036854775808", "text|-9223372036854775808"},
		{"9223372036854775808", "text|9223372036854775808", "real|9.223372036854776e+18", "text|9223372036854775808"},
		{"1.0", "real|1", "integer|1", "text|1.0"},
		{"0.1", "real|0.1", "real|0.1", "text|0.1"},
		{"1e3", "real|1000", "integer|1000", "text|1000.0"},
		{"0.1000000000000000055511151231257827", "text|0.1000000000000000055511151231257827", "real|0.1", "text|0.1000000000000000055511151231257827"},
		{"1e400", "text|1e400", "real|+Inf", "text|1e400"},
		{`"third"`, "real|0.3333333333333333", "real|0.3333333333333333", "text|0.33333333333333332"},
		{`"sum"`, "integer|9007199254740993", "integer|9007199254740993", "text|9007199254740993"},
		{`""`, "text|", "text|", "text|"},
		{`"12"`, "text|12", "integer|12", "text|12"},
		{`"h\u00e9 \ud83d\ude00"`, "text|hé 😀", "text|hé 😀", "text|hé 😀"},
		{`{"a":[1,2.50,12345678901234567890]}`, `text|{"a":[1,2.50,12345678901234567890]}`, `text|{"a":[1,2.50,12345678901234567890]}`, `text|{"a":[1,2.50,12345678901234567890]}`},
		{`[]`, "text|[]", "text|[]", "text|[]"},
		{`"time"`, "text|2026-03-02T08:00:00.123456789Z", "text|2026-03-02T08:00:00.123456789Z", "text|2026-03-02T08:00:00.123456789Z"},
		{`"bytes"`, "blob|[97 98]", "blob|[97 98]", "blob|[97 98]"},
		{`"meta"`, "integer|7", "integer|7", "text|7"},
	}
	for _, c := range cases {
		d.exec("DELETE FROM t")
		batch := batchOf(c.payload)
		batch[0].MetaSetMut("n", 7)
		require.NoError(t, w.WriteBatch(t.Context(), batch), c.payload)
		require.Equal(t, []string{c.blob + "|" + c.integer + "|" + c.text},
			d.rows("SELECT typeof(b), b, typeof(i), i, typeof(x), x FROM t"), c.payload)
	}
}

// A whole column of integers beyond 2^53 survives, to the digit.
func TestStrictTablesSayWhatDoesNotFit(t *testing.T) {
	d := newDatabase(t, "CREATE TABLE t (i INTEGER, x TEXT NOT NULL) STRICT")
	w := d.output(nameInsert, "table: t\ncolumns: [ i, x ]\nargs_mapping: root = [ this.i, this.x ]\n")
	for payload, parts := range map[string][]string{
		`{"i":"abc","x":""}`: {`table "t", columns i, x`, `column i, value "abc"`, "cannot store TEXT value in INTEGER column", "give a value of the column's type in args_mapping"},
		`{"i":1.5,"x":""}`:   {"column i, value 1.5", "cannot store REAL value"},
		`{"i":1}`:            {"column x, value null", "NOT NULL constraint failed: t.x", "let the table have a default"},
	} {
		err := w.WriteBatch(t.Context(), batchOf(payload))
		for _, part := range parts {
			require.ErrorContains(t, err, part)
		}
	}
}

func TestWhatSqliteSays(t *testing.T) {
	insert := "table: t\ncolumns: [ k, v ]\nargs_mapping: root = [ this.k, this.v ]\n"
	for _, c := range []struct{ about, output, conf, fault, remedy string }{
		{"no unique key", nameInsert, insert + "suffix: on conflict (k, v) DO NOTHING", "does not match any PRIMARY KEY or UNIQUE constraint", "CREATE UNIQUE INDEX t_key ON t (k, v)"},
		{"no table", nameInsert, strings.Replace(insert, "table: t", "table: missing", 1), "no such table: missing", "create the table first"},
		{"no column", nameInsert, strings.Replace(insert, "k, v ]", "k, m ]", 1), "no column named m", "name the columns of the table"},
		{"bad SQL", nameRaw, "query: INSERT INTO", "incomplete input", ""},
		{"a query that is not dynamic", nameRaw, "query: INSERT INTO t VALUES (${! this.n }, 2)", "${! this.n }", "unsafe_dynamic_query: true"},
		{"a word too many", nameRaw, "query: INSERT INTO t VALUES (1, 2) SOMEHOW", "syntax error", "put the SQL right"},
		{"too few values", nameRaw, "query: INSERT INTO t VALUES (?, ?)\nargs_mapping: root = [ 1 ]", "argument", ""},
		{"read-only", nameInsert, insert + "dsn: file:PATH?mode=ro", "readonly database", "make the file and its folder writable"},
	} {
		d := newDatabase(t, "CREATE TABLE t (k TEXT, v INTEGER)")
		conf := strings.Replace(c.conf, "PATH", d.path, 1)
		if !strings.Contains(conf, "dsn:") {
			conf += "\ndsn: file:" + d.path
		}
		w, err := construct(c.output, "driver: sqlite\n"+conf)
		require.NoError(t, err)
		require.NoError(t, w.Connect(t.Context()))
		err = w.WriteBatch(t.Context(), batchOf(`{"k":"a","v":1}`))
		require.ErrorContains(t, err, c.fault, c.about)
		require.ErrorContains(t, err, c.remedy, c.about)
		require.NoError(t, w.Close(context.Background()))
	}
}

func TestIndex(t *testing.T) {
	for _, c := range []struct{ table, suffix, want string }{
		{"t", "ON CONFLICT (a) DO NOTHING", "CREATE UNIQUE INDEX t_key ON t (a)"},
		{"shop.t", "on  conflict( a, b ) DO NOTHING", "CREATE UNIQUE INDEX t_key ON shop.t (a, b)"},
		{`"T"`, `ON CONFLICT ("A") DO NOTHING`, `CREATE UNIQUE INDEX T_key ON "T" ("A")`},
		{"t", "ON CONFLICT DO NOTHING", ""},
		{"t", "ON CONFLICT ON CONSTRAINT c DO NOTHING", ""},
		{"t", "", ""},
	} {
		require.Equal(t, c.want, index(c.table, c.suffix))
	}
}

func TestPlain(t *testing.T) {
	for _, c := range []struct{ from, to any }{
		{int(-1), int64(-1)}, {int32(7), int64(7)}, {uint32(math.MaxUint32), int64(math.MaxUint32)},
		{uint64(math.MaxInt64), int64(math.MaxInt64)}, {uint64(math.MaxUint64), json.Number("18446744073709551615")},
		{float64(3), int64(3)}, {-0.5, json.Number("-0.5")}, {float64(1 << 53), int64(1 << 53)}, {float64(1 << 60), json.Number("1.152921504606847e+18")},
		{float32(0.5), json.Number("0.5")}, {math.NaN(), json.Number("NaN")}, {math.Inf(1), json.Number("Infinity")}, {math.Inf(-1), json.Number("-Infinity")},
		{json.Number("12"), int64(12)}, {json.Number("12.0"), json.Number("12.0")}, {json.Number("99999999999999999999"), json.Number("99999999999999999999")},
	} {
		got, err := plain(c.from)
		require.NoError(t, err)
		require.Equal(t, c.to, got, "%v", c.from)
	}
	_, err := plain(struct{}{})
	require.ErrorIs(t, err, errNoSQLValue)
}

// Values for PostgreSQL, as the text that is sent.
func TestValuesForPostgres(t *testing.T) {
	types := postgresTypes{pgtype.NewMap()}
	at := time.Date(2026, 3, 2, 9, 0, 0, 123456000, time.FixedZone("", 3600))
	for _, c := range []struct {
		oid  uint32
		v    any
		want any
	}{
		{pgtype.Int8OID, nil, nil},
		{pgtype.BoolOID, true, "true"},
		{pgtype.Int8OID, int64(math.MinInt64), "-9223372036854775808"},
		{pgtype.Int8OID, json.Number("1.0"), "1"},
		{pgtype.Int4OID, json.Number("1e3"), "1000"},
		{pgtype.Int4OID, json.Number("1.5"), "1.5"},
		{pgtype.NumericOID, json.Number("1.0"), "1.0"},
		{pgtype.NumericOID, json.Number("12345678901234567890.123456789"), "12345678901234567890.123456789"},
		{0, json.Number("1.0"), "1.0"},
		{pgtype.TextOID, int64(5), "5"},
		{pgtype.TimestamptzOID, at, "2026-03-02T08:00:00.123456Z"},
		{pgtype.ByteaOID, []byte{0, 255}, []byte{0, 255}},
		{pgtype.TextOID, []byte("ab"), "ab"},
		{pgtype.JSONBOID, []byte(`{"a":1}`), `{"a":1}`},
		{pgtype.JSONBOID, map[string]any{"a": json.Number("1.50")}, `{"a":1.50}`},
		{pgtype.JSONBOID, []any{int64(1), "x"}, `[1,"x"]`},
		{pgtype.TextOID, []any{int64(1)}, `[1]`},
		{pgtype.Int4ArrayOID, []any{}, `{}`},
		{pgtype.Int4ArrayOID, []any{int64(1), nil, json.Number("2.0")}, `{"1",NULL,"2"}`},
		{pgtype.TextArrayOID, []any{`a"b\c`, "", "NULL", "{,}"}, `{"a\"b\\c","","NULL","{,}"}`},
		{pgtype.TextArrayOID, []any{[]any{"a"}, []any{"b"}}, `{{"a"},{"b"}}`},
		{pgtype.JSONBArrayOID, []any{map[string]any{"a": int64(1)}, []any{int64(2)}}, `{"{\"a\":1}","[2]"}`},
		{pgtype.ByteaArrayOID, []any{[]byte{1, 254}}, `{"\\x01fe"}`},
	} {
		got, err := types.value(c.oid, c.v)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%v", c.v)
	}
	for _, v := range []any{struct{}{}, []any{struct{}{}}, []any{[]any{struct{}{}}}, map[string]any{"a": math.NaN()}} {
		_, err := types.value(pgtype.TextArrayOID, v)
		require.Error(t, err, "%v", v)
	}
}

// FuzzNumbers: a number keeps its digits, or is a text that has them.
func FuzzNumbers(f *testing.F) {
	for _, seed := range []string{"0", "-0", "1.0", "1e400", "9007199254740993", "0.1", "123456789012345678901234567890", "1e-400", "5e-324"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
			return
		}
		v, err := sqliteValue(json.Number(text))
		require.NoError(t, err)
		switch v := v.(type) {
		case int64:
			require.True(t, fmt.Sprint(v) == text || text == "-0", text)
		case float64:
			require.Equal(t, digits(text), digits(fmt.Sprintf("%v", v)), text)
		default:
			require.Equal(t, text, v)
		}
	})
}

// BenchmarkInsert is the cost of a row, upserted in batches.
func BenchmarkInsert(b *testing.B) {
	for _, size := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			d := newDatabase(b, keyed)
			w := d.output(nameInsert, intoT+newerWin)
			batch := make(service.MessageBatch, size)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				for i := range batch {
					batch[i] = service.NewMessage(fmt.Appendf(nil, `{"k":"k%d","r":%d,"v":%d}`, i, n, n))
				}
				require.NoError(b, w.WriteBatch(context.Background(), batch))
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
