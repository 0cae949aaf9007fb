package expr

import (
	"math"
	"testing"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure" // ts_strptime, counter
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// ask evaluates one expression on one message.
func ask(t *testing.T, msg *service.Message, text string, add func(s *Set, field, text string) (Slot, error)) (*Frame, Slot) {
	t.Helper()
	s := NewSet()
	slot, err := add(s, "field", text)
	require.NoError(t, err)
	f := &Frame{}
	s.Eval(service.MessageBatch{msg}, f)
	return f, slot
}

func document(doc string) *service.Message { return service.NewMessage([]byte(doc)) }

func carrying(v any) *service.Message {
	msg := service.NewMessage(nil)
	msg.MetaSetMut("v", v)
	return msg
}

var in = struct {
	s, ms, us, ns func(*Set, string, string) (Slot, error)
}{
	s:  timeIn(watermark.Second),
	ms: timeIn(watermark.Millisecond),
	us: timeIn(watermark.Microsecond),
	ns: timeIn(watermark.Nanosecond),
}

func timeIn(unit watermark.Unit) func(*Set, string, string) (Slot, error) {
	return func(s *Set, field, text string) (Slot, error) { return s.Time(field, text, unit) }
}

func TestValue(t *testing.T) {
	for doc, want := range map[string]agg.Value{
		`{}`:                                     agg.Null(),
		`{"v":null}`:                             agg.Null(),
		`{"v":""}`:                               agg.String(""),
		`{"v":"null"}`:                           agg.String("null"),
		`{"v":" "}`:                              agg.String(" "),
		`{"v":true}`:                             agg.Bool(true),
		`{"v":false}`:                            agg.Bool(false),
		`{"v":0}`:                                agg.Int(0),
		`{"v":-0}`:                               agg.Int(0),
		`{"v":-1}`:                               agg.Int(-1),
		`{"v":9007199254740993}`:                 agg.Int(9007199254740993),
		`{"v":9223372036854775807}`:              agg.Int(math.MaxInt64),
		`{"v":-9223372036854775808}`:             agg.Int(math.MinInt64),
		`{"v":100000000000000000000}`:            agg.Float(1e20),
		`{"v":1.0}`:                              agg.Float(1),
		`{"v":1E2}`:                              agg.Float(100),
		`{"v":0.1e1}`:                            agg.Float(1),
		`{"v":19.99}`:                            agg.Float(19.99),
		`{"v":-0.5}`:                             agg.Float(-0.5),
		`{"v":0.1234567890123456789}`:            agg.Float(0.1234567890123456789),
		`{"v":1e-400}`:                           agg.Float(0),
		`{"v":[1.0, {"b":2,"a":1}]}`:             agg.JSON(`[1,{"a":1,"b":2}]`),
		`{"v":{}}`:                               agg.JSON(`{}`),
		`{"v":"a\u00e9\n"}`:                      agg.String("aé\n"),
		"{\"v\":\"\u65e5\u672c\u8a9e text\"}":    agg.String("日本語 text"),
		`{"v":"2023-11-14T22:13:20Z","v":"x"}`:   agg.String("x"),
		`{"w":{"v":1},"v":{"v":2},"x":"{\"v\""}`: agg.JSON(`{"v":2}`),
	} {
		f, slot := ask(t, document(doc), "this.v", (*Set).Value)
		require.NoError(t, f.Err(0, slot), doc)
		require.Equal(t, want, f.Value(0, slot), doc)
		require.NoError(t, f.RowErr(0), doc)
	}
}

func TestValueOfGoValues(t *testing.T) {
	zone := time.FixedZone("", 3600)
	for _, c := range []struct {
		give any
		want agg.Value
	}{
		{nil, agg.Null()}, {true, agg.Bool(true)}, {"x", agg.String("x")}, {[]byte("x"), agg.String("x")},
		{int(-1), agg.Int(-1)}, {int8(-1), agg.Int(-1)}, {int16(-1), agg.Int(-1)}, {int32(-1), agg.Int(-1)}, {int64(math.MinInt64), agg.Int(math.MinInt64)},
		{uint(1), agg.Int(1)}, {uint8(255), agg.Int(255)}, {uint16(1), agg.Int(1)}, {uint32(1), agg.Int(1)}, {uint64(math.MaxInt64), agg.Int(math.MaxInt64)},
		{float32(0.5), agg.Float(0.5)}, {1.5, agg.Float(1.5)},
		{time.Date(2023, 11, 14, 23, 13, 20, 5, zone), agg.String("2023-11-14T22:13:20.000000005Z")},
		{[]any{1.0, "x"}, agg.JSON(`[1,"x"]`)},
	} {
		f, slot := ask(t, carrying(c.give), "@v", (*Set).Value)
		require.NoError(t, f.Err(0, slot), "%v", c.give)
		require.Equal(t, c.want, f.Value(0, slot), "%v", c.give)
	}
}

// Errors name field, expression, value, what is allowed or what to do.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		msg  *service.Message
		text string
		add  func(*Set, string, string) (Slot, error)
		is   error
		says []string
	}{
		{document(`{"v":18446744073709551615}`), "this.v", (*Set).Value, ErrValue, []string{"field: this.v is the integer 18446744073709551615", "64 bits", ".string()"}},
		{document(`{"v":1e400}`), "this.v", (*Set).Value, ErrValue, []string{"1e400", ".string()"}},
		{document(`{"v":[1e400]}`), "this.v", (*Set).Value, ErrValue, []string{"field: this.v", "1e400"}},
		{carrying(math.NaN()), "@v", (*Set).Value, ErrValue, []string{"field: @v", "NaN"}},
		{carrying(math.Inf(-1)), "@v", (*Set).Value, ErrValue, []string{"-Inf"}},
		{carrying(struct{}{}), "@v", (*Set).Value, ErrValue, []string{"struct {}"}},
		{carrying("\xff"), "@v", (*Set).Value, ErrValue, []string{"UTF-8"}},
		{carrying(uint64(math.MaxUint64)), "@v", (*Set).Value, ErrValue, []string{"18446744073709551615"}},
		{document(`{"v":null}`), "this.v", (*Set).Text, ErrValue, []string{"field: this.v is null or missing", "allowed are texts", ".or("}},
		{document(`{"v":{}}`), "this.v", (*Set).Text, ErrValue, []string{"an object or a list"}},
		{document(`{}`), "this.v", (*Set).Bool, ErrValue, []string{"null or missing", "true and false", ".or(false)"}},
		{document(`{"v":"true"}`), "this.v", (*Set).Bool, ErrValue, []string{`the text "true"`}},
		{document(`{"v":1}`), "this.v", (*Set).Bool, ErrValue, []string{"the number 1"}},
		{document(`{"v":"x"}`), "this.v", (*Set).Int, ErrValue, []string{`the text "x"`, "decimal"}},
		{document(`{"v":""}`), "this.v", (*Set).Int, ErrValue, []string{`the text ""`}},
		{document(`{"v":1.5}`), "this.v", (*Set).Int, ErrValue, []string{"1.5"}},
		{document(`{"v":9007199254740993.0}`), "this.v", (*Set).Int, ErrValue, nil},
		{document(`{"v":9223372036854775808}`), "this.v", (*Set).Int, ErrValue, nil},
		{document(`{"v":true}`), "this.v", (*Set).Int, ErrValue, []string{"true"}},
		{document(`{"v":null}`), "this.v", in.s, ErrValue, []string{"field: this.v is null or missing", "RFC 3339"}},
		{document(`{"v":""}`), "this.v", in.s, ErrValue, []string{`""`}},
		{document(`{"v":"yesterday"}`), "this.v", in.s, ErrValue, []string{"field: this.v", "yesterday", "RFC 3339"}},
		{document(`{"v":true}`), "this.v", in.s, ErrValue, []string{"is true", "RFC 3339"}},
		{document(`{"v":{}}`), "this.v", in.s, ErrValue, []string{"an object or a list"}},
		{document(`{"v":"2016-12-31T23:59:60Z"}`), "this.v", in.s, ErrValue, []string{"leap"}},
		{document(`{"v":"1700000041"}`), "this.v", in.s, ErrValue, []string{"number()"}},
		{document(`{"v":"2023-11-14 22:14:00"}`), "this.v", in.s, ErrValue, nil},
		{document(`{"v":1700000040000}`), "this.v", in.s, ErrValue, []string{"ms"}},
		{document(`{"v":1.7e12}`), "this.v", in.s, ErrValue, []string{"ms"}},
		{carrying(math.NaN()), "@v", in.s, ErrValue, []string{"NaN"}},
		{carrying(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)), "@v", in.s, ErrValue, nil},
		{document(`not json`), "this.v", (*Set).Value, ErrDocument, []string{"field: the payload cannot be read: it is not JSON", "invalid character"}},
		{document(`not json`), "(this.v)", (*Set).Value, ErrEvaluate, []string{"field: (this.v)", "parse as json"}},
		{document(``), "this.v", (*Set).Value, ErrDocument, []string{"empty"}},
		{service.NewMessage(nil), "this.v", (*Set).Value, ErrDocument, []string{"empty"}},
		{document("{\"v\":\"\xff\"}"), "this.v", (*Set).Value, ErrDocument, []string{"UTF-8"}},
		{document("{\"v\":\"\xff\"}"), "(this.v)", (*Set).Value, ErrDocument, []string{"UTF-8"}},
		{document(`{"v":1}`), "this.v.uppercase()", (*Set).Value, ErrEvaluate, []string{"field: this.v.uppercase(): ", "expected string value, got number"}},
		{document(`{"v":1}`), "let x = 1\nroot = throw(\"no\")", (*Set).Value, ErrEvaluate, []string{"line 2", "no"}},
	} {
		f, slot := ask(t, c.msg, c.text, c.add)
		err := f.Err(0, slot)
		require.ErrorIs(t, err, c.is, c.text)
		for _, part := range c.says {
			require.ErrorContains(t, err, part)
		}
		require.True(t, f.Value(0, slot).IsNull(), c.text)
		require.Equal(t, watermark.Unset, f.Time(0, slot))
		require.False(t, f.Bool(0, slot))
		require.Empty(t, f.Text(0, slot))
		_, ok := f.Int(0, slot)
		require.False(t, ok)
	}
}

func TestText(t *testing.T) {
	for doc, want := range map[string]string{
		`{"v":"1"}`: "1", `{"v":1}`: "1", `{"v":1.0}`: "1", `{"v":1e0}`: "1", `{"v":-0}`: "0", `{"v":0.50}`: "0.5",
		`{"v":true}`: "true", `{"v":""}`: "", `{"v":18446744073709551615}`: "18446744073709551615", `{"v":1e400}`: "1e400",
		`{"v":100000000000000000000}`: "100000000000000000000", `{"v":"\u0031"}`: "1",
	} {
		f, slot := ask(t, document(doc), "this.v", (*Set).Text)
		require.NoError(t, f.Err(0, slot), doc)
		require.Equal(t, want, f.Text(0, slot), doc)
	}
}

func TestInt(t *testing.T) {
	for doc, want := range map[string]int64{
		`{"v":0}`: 0, `{"v":-1}`: -1, `{"v":9223372036854775807}`: math.MaxInt64, `{"v":"9223372036854775807"}`: math.MaxInt64, `{"v":"-9223372036854775808"}`: math.MinInt64,
		`{"v":12.0}`: 12, `{"v":1.2e1}`: 12, `{"v":"12"}`: 12, `{"v":123456789012345678}`: 123456789012345678, `{"v":-999999999999999999}`: -999999999999999999,
	} {
		f, slot := ask(t, document(doc), "this.v", (*Set).Int)
		got, ok := f.Int(0, slot)
		require.True(t, ok, "%s: %v", doc, f.Err(0, slot))
		require.Equal(t, want, got, doc)
	}
	f, slot := ask(t, document(`{}`), "this.v", (*Set).Int)
	_, ok := f.Int(0, slot)
	require.False(t, ok)
	require.NoError(t, f.Err(0, slot))
}

func TestTime(t *testing.T) {
	const at = 1700000040 * 1e9
	for _, c := range []struct {
		msg  *service.Message
		text string
		add  func(*Set, string, string) (Slot, error)
		want watermark.Time
	}{
		{document(`{"v":1700000040}`), "this.v", in.s, at},
		{document(`{"v":1700000040000}`), "this.v", in.ms, at},
		{document(`{"v":1700000040000000}`), "this.v", in.us, at},
		{document(`{"v":1700000040000000001}`), "this.v", in.ns, at + 1},
		{document(`{"v":1700000040}`), "this.v", in.ms, 1700000040 * 1e6},
		{document(`{"v":0}`), "this.v", in.s, 0},
		{document(`{"v":-1}`), "this.v", in.s, -1e9},
		{document(`{"v":1700000040.1}`), "this.v", in.s, at + 1e8},
		{document(`{"v":1700000040.123456789}`), "this.v", in.s, at + 123456789},
		{document(`{"v":1.70000004e9}`), "this.v", in.s, at},
		{document(`{"v":"2023-11-14T22:14:00Z"}`), "this.v", in.s, at},
		{document(`{"v":"2023-11-14T23:14:30+01:00"}`), "this.v", in.s, at + 30e9},
		{document(`{"v":"2023-11-14T22:14:59.999999999Z"}`), "this.v", in.s, at + 6e10 - 1},
		{document(`{"v":"2023-11-14T22:14:00Z"}`), "this.v", in.s, at},
		{document(`{"v":"1700000040"}`), "this.v.number()", in.s, at},
		{document(`{"v":"2023-11-14 22:14:00"}`), `this.v.ts_strptime("%Y-%m-%d %H:%M:%S")`, in.s, at},
		{carrying(time.Unix(1700000040, 1)), "@v", in.s, at + 1},
		{carrying(1700000040.1), "@v", in.s, at + 1e8},
		{carrying(int64(1700000040)), "@v", in.s, at},
	} {
		f, slot := ask(t, c.msg, c.text, c.add)
		require.NoError(t, f.Err(0, slot), c.text)
		require.Equal(t, c.want, f.Time(0, slot), c.text)
	}
}

// What has no value is null; the message's own field of the name v is not.
func TestNoValueIsNull(t *testing.T) {
	for _, text := range []string{"deleted()", "nothing()", "null", "if false { this.v }", "root = deleted()", "let x = this.v", "meta y = this.v", "root.x = nothing()\nroot = root.x"} {
		f, slot := ask(t, document(`{"v":1,"x":2}`), text, (*Set).Value)
		require.NoError(t, f.Err(0, slot), text)
		require.Equal(t, agg.Null(), f.Value(0, slot), text)
	}
}

func TestMappingsSeeDocumentAndMetadata(t *testing.T) {
	for text, want := range map[string]agg.Value{
		"this.v + @n":                                                   agg.Int(8),
		"root = this.v + @n # comment":                                  agg.Int(8),
		"let x = this.v\nroot.a = $x\nroot.b = @k":                      agg.JSON(`{"a":1,"b":"orders"}`),
		"map twice { root = this * 2 }\nroot = this.v.apply(\"twice\")": agg.Int(2),
		"if this.v == 1 { \"one\" } else { \"other\" }":                 agg.String("one"),
		"match this.v {\n  1 => \"one\"\n  _ => \"other\"\n}":           agg.String("one"),
		"[this.v, @k]":                agg.JSON(`[1,"orders"]`),
		"content().string().length()": agg.Int(7),
		"batch_size()":                agg.Int(1),
	} {
		f, slot := ask(t, messages(`{"v":1}`)[0], text, (*Set).Value)
		require.NoError(t, f.Err(0, slot), text)
		require.Equal(t, want, f.Value(0, slot), text)
	}
}

func TestCompileErrorsSayWhere(t *testing.T) {
	for _, c := range []struct {
		text string
		says []string
	}{
		{"this.amount +", []string{`aggregates.total: "this.amount +", line 1 column 14`, "expected query"}},
		{"root.x = this.a\nroot.y = ", []string{"line 2 column 10"}},
		{"this.a.nope()", []string{"unrecognised method 'nope'"}},
		{"this.a) + (1", []string{"column 7"}},
		{"this.a = 1", []string{`"this.a ="`, "write == to compare"}},
		{" \n", []string{"empty"}},
		{"", []string{"empty"}},
	} {
		_, err := NewSet().Value("aggregates.total", c.text)
		require.ErrorIs(t, err, ErrCompile, c.text)
		for _, part := range c.says {
			require.ErrorContains(t, err, part)
		}
	}
}

// TestComparisonsAreNoAssignments: lines of a mapping may begin with a comparison.
func TestComparisonsAreNoAssignments(t *testing.T) {
	for _, text := range []string{
		"root = this.a == 1 ||\nthis.b==2", "root = this.a == 1 ||\n  this.b<=2", "root = this.a == 1 ||\n  this.b!=2",
		"root = match {\n  this.a>=1 => true\n  this.a == 0 => false\n  _ => true\n}", "let a = this.a\nroot = $a == 1",
		"root.x = this.a\nroot.y = 1", "root = this.a == 1 || # this.a = 1 is none\n\tthis == 5",
	} {
		_, err := NewSet().Value("where", text)
		require.NoError(t, err, text)
	}
}
