package expr

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// paths are what the agreement is checked on: roots, nested fields, indexes,
// keys that need quotes, the empty key, prefixes of each other.
var paths = []string{
	`this`, `this.a`, `this.b`, `this.a.b`, `this.a.b.c`, `this.a.0`, `this.a.1.b`, `this.0`, `this.0.a`, `this.10`,
	`this."a.b"`, `this."x y"`, `this.""`, `this.a.""`, `this."é"`, `this."\"\\"`, `this."~0~1"`, `this.a."a.b".c`,
	`this.longer_key_name`, `this.longer_key_name.a`,
}

// documents is the seed corpus: every shape in which readers of JSON differ.
var documents = []string{
	``, ` `, `null`, `true`, `false`, `42`, `"a"`, `[]`, `{}`, ` { } `, `[[]]`, `nul`, `nulll`, `truefalse`, `not json`,
	`{"a":1}`, `{"a":1`, `{"a":1}}`, `{"a":1},`, `{"a":1}{"a":2}`, `{"a":1} {"a":2}`, `{"a":1}x`, "{\"a\":1}\x00", `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{'a':1}`,
	`{"a":1}` + "\n", "\ufeff" + `{"a":1}`, "\t\r\n {\t\"a\"\r:\n1 , \"b\" : 2 } ", "{\"a\":\v1}", "{\"a\":\u00a01}",
	`{"a":1,"a":2}`, `{"a":{"b":1},"a":2}`, `{"a":1,"a":{"b":1}}`, `{"a":{"b":1},"a":{"c":1}}`, `{"a":{"b":1,"b":2}}`, `{"a":[1,2],"a":[3]}`, `{"a":1,"\u0061":2}`, `{"a":1,"a":null}`,
	`{"a":null}`, `{"a":null,"b":1}`, `{"a":"","b":" "}`, `{"b":"null"}`,
	`{"a":0}`, `{"a":-0}`, `{"a":-0.0}`, `{"a":00}`, `{"a":01}`, `{"a":-}`, `{"a":-1}`, `{"a":+1}`, `{"a":.5}`, `{"a":5.}`, `{"a":1.0}`, `{"a":1.}`, `{"a":1e}`, `{"a":1e+}`, `{"a":1E2}`, `{"a":1e-2}`, `{"a":0.1e1}`, `{"a":0e5}`,
	`{"a":1e400}`, `{"a":-1e400}`, `{"a":1e-400}`, `{"a":1.7976931348623157e308}`, `{"a":1.7976931348623159e308}`, `{"a":5e-324}`,
	`{"a":9007199254740993}`, `{"a":9223372036854775807}`, `{"a":9223372036854775808}`, `{"a":-9223372036854775808}`, `{"a":-9223372036854775809}`, `{"a":18446744073709551615}`,
	`{"a":12345678901234567890}`, `{"a":100000000000000000000}`, `{"a":1000000000000000000000}`, `{"a":123456789012345678}`, `{"a":1234567890123456789}`, `{"a":0.1234567890123456789}`, `{"a":1.50}`,
	`{"a":NaN}`, `{"a":Infinity}`, `{"a":0x10}`, `{"a":1_000}`, `{"a":1 2}`, `{"a":1a}`, `{"a":truex}`,
	`{"a":"\"\\\/\b\f\n\r\t"}`, `{"a":"\u00e9"}`, `{"a":"\u0000"}`, `{"a":"\uD83D\uDE00"}`, `{"a":"\ud800"}`, `{"a":"\ud800x"}`, `{"a":"\ud800\n"}`, `{"a":"\ud800\ud800"}`, `{"a":"\udc00\ud800"}`, `{"a":"\ud800\u0041"}`, `{"a":"\uD83D\uDE00\uD83D"}`, `{"a":"\ud83d\ude0"}`,
	`{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, `{"a":"\U0041"}`, `{"a":"\`, `{"a":"\"`, `{"a":"\u`, `{"a":"`, "{\"a\":\"\n\"}", "{\"a\":\"\x1f\"}", "{\"a\":\"\x7f\"}", "{\"a\":\"12345678\x01\"}",
	`{"a":"é"}`, `{"é":1}`, `{"\u00e9":2}`, "{\"a\":\"\xff\"}", "{\"\xff\":1,\"a\":2}", "{\"a\":\"\xc3\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"12345678\xf0\x9f\x98\x80\"}", "{\"a\":\"\xf0\x9f\x98\"}", "{\"a\":1}\xff", "{\"b\":{\"c\":\"\xc0\x80\"}}",
	`{"a":{}}`, `{"a":[]}`, `{"a":{"b":{"c":"deep"}}}`, `{"a":{"b":[]}}`, `{"a":{"b":5}}`, `{"a":{"b":null}}`, `{"a":"text"}`, `{"a":{"0":"key","1":{"b":"key"}}}`,
	`{"a":["zero",{"b":"one"}]}`, `{"a":["zero"]}`, `{"a":[[],[1]]}`, `[{"a":"first"}]`, `["0"]`, `[0,1,2,3,4,5,6,7,8,9,"ten"]`, `{"0":{"a":1}}`, `{"10":1}`, `[1,]`, `[,1]`, `[1 2]`, `[1`, `[`, `[[1]`, `[1}`, `{"a":[1}`, `{"a":{"x":[1,{"y":2}],"b":3}}`,
	`{"a.b":1,"x y":2,"":3,"é":4,"\"\\":5,"~0~1":6}`, `{"a":{"":7,"a.b":{"c":8}}}`, `{"\u0061":{"\u0062":"escaped keys"}}`, `{"a\u0000":1}`, `{"A":1}`,
	`{"longer_key_name":{"a":"b"},"longer_key_namf":1,"longer_key_nam":2}`,
	`{"a":"a text that is longer than sixty-four bytes, which the memory of recent texts does not take"}`,
	`{"a":"2023-11-14T22:13:20Z"}`, `{"a":"2016-12-31T23:59:60Z"}`, `{"a":1700000000.5}`, `{"a":1.7e9}`, `{"a":1700000000000}`, `{"a":"12"}`, `{"a":"1e3"}`, `{"a":9007199254740993.0}`, `{"a":12.0}`,
	`{"skipped":{"x":[{"y":"}"},"]",[[[]]],{}],"z":{"w":{}}},"a":1}`, `{"skipped":[1,"\ud800",true,false,null,-1.5e-7],"a":1}`, `{"skipped":[tru],"a":1}`, `{"skipped":{"x":1,},"a":1}`, `{"skipped":[1,],"a":1}`, `{"skipped":{"x" 1},"a":1}`, `{"skipped":{1:2},"a":1}`, `{"skipped":{"x":1]},"a":1}`, `{"skipped":[1},"a":1}`,
	strings.Repeat("[", 600) + strings.Repeat("]", 600),
	`{"a":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + `}`, `{"a":` + strings.Repeat("[", 512) + strings.Repeat("]", 512) + `}`,
	`{"a":` + strings.Repeat(`{"b":`, 511) + `1` + strings.Repeat("}", 511) + `}`, `{"a":` + strings.Repeat(`{"b":`, 512) + `1` + strings.Repeat("}", 512) + `}`,
	`{"skipped":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `,"a":1}`, strings.Repeat("[", 10000) + strings.Repeat("]", 10000), strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
	`{"id":"c-1029","ts":1700000040,"page":"/product/17","amount":19.99,"customer_id":"u-55","paid":true,"tags":["new","web"],"ship":{"city":"Bern","zip":"3011"}}`,
}

var everyKind = []kind{asValue, asText, asBool, asInt, asTime, asKey}

// question is one expression asked of a document in two ways.
type question struct {
	text     string
	kind     kind
	raw, ref Slot
}

// agreement holds a Set that may read bytes beside one that may not.
type agreement struct {
	reader, bloblang *Set
	questions        []question
}

func newAgreement(t testing.TB, kinds []kind, texts ...string) *agreement {
	a := &agreement{reader: NewSet(), bloblang: NewSet()}
	for _, text := range texts {
		for _, kind := range kinds {
			raw, err := a.reader.add("field", cellKey{kind: kind, unit: watermark.Millisecond, text: text})
			require.NoError(t, err, text)
			// In brackets it is no plain path any more.
			ref, err := a.bloblang.add("field", cellKey{kind: kind, unit: watermark.Millisecond, text: "(" + text + ")"})
			require.NoError(t, err, text)
			a.questions = append(a.questions, question{text, kind, raw, ref})
		}
	}
	require.Zero(t, a.bloblang.paths.leaves)
	return a
}

// check asks the reader, the walker of structured messages and Bloblang, of
// documents that come one after the other.
func (a *agreement) check(t *testing.T, payloads ...string) {
	var bytes, walked, ref Frame
	a.reader.Eval(messages(payloads...), &bytes)
	parsed := messages(payloads...)
	for _, msg := range parsed {
		_, _ = msg.AsStructured()
	}
	a.reader.Eval(parsed, &walked)
	a.bloblang.Eval(messages(payloads...), &ref)
	for row, payload := range payloads {
		for _, q := range a.questions {
			want, wantErr := ref.Value(row, q.ref), ref.Err(row, q.ref)
			for _, f := range []*Frame{&bytes, &walked} {
				first, firstErr := f.Get(row, q.raw)
				got, gotErr := f.Value(row, q.raw), f.Err(row, q.raw)
				require.Equal(t, wantErr == nil, gotErr == nil, "%s as %d of %q: %v, Bloblang: %v", q.text, q.kind, payload, gotErr, wantErr)
				require.Equal(t, want, got, "%s as %d of %q", q.text, q.kind, payload)
				require.Equal(t, got, first, "%s as %d of %q", q.text, q.kind, payload)
				require.Equal(t, gotErr, firstErr, "%s as %d of %q", q.text, q.kind, payload)
			}
		}
		if a.reader.paths.leaves > 0 {
			require.Equal(t, bytes.RowErr(row) == nil, walked.RowErr(row) == nil, "%q", payload)
			require.Equal(t, simple(payload), bytes.rows[row] == raw, "the reader and JSON: %q", payload)
		}
	}
}

// messages makes a batch with some metadata.
func messages(payloads ...string) service.MessageBatch {
	var batch service.MessageBatch
	for _, payload := range payloads {
		msg := service.NewMessage([]byte(payload))
		msg.MetaSetMut("k", "orders")
		msg.MetaSetMut("n", int64(7))
		msg.MetaSetMut("bad", []byte{0xff})
		msg.MetaSetMut("nan", math.NaN())
		msg.MetaSetMut("when", time.Unix(1700000000, 0))
		msg.MetaSetMut("big", uint64(math.MaxUint64))
		msg.MetaSetMut("float", float32(1))
		msg.MetaSetMut("object", map[string]any{"x": []any{1.0}})
		batch = append(batch, msg)
	}
	return batch
}

// simple says whether the reader must accept a document: it may step aside for
// deep ones only.
func simple(payload string) bool {
	depth, deepest := 0, 0
	d := json.NewDecoder(strings.NewReader(payload))
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return utf8.ValidString(payload) && json.Valid([]byte(payload)) && deepest <= maxDepth
}

func TestReaderAgreesWithBloblang(t *testing.T) {
	newAgreement(t, everyKind, paths...).check(t, documents...)
	a := newAgreement(t, []kind{asValue}, paths...)
	for _, doc := range documents {
		a.check(t, doc, `{"a":1,"b":2}`, doc)
	}
}

// Every document cut short at every place, and with every byte replaced by some
// that matter.
func TestReaderAgreesOnDamagedDocuments(t *testing.T) {
	a := newAgreement(t, []kind{asValue}, `this.a`, `this.a.b`)
	for _, doc := range documents {
		if len(doc) > 48 {
			continue
		}
		for i := range len(doc) {
			a.check(t, doc, doc[:i])
			for _, c := range []byte("\"\\{],0\x80") {
				a.check(t, doc, doc[:i]+string([]byte{c})+doc[i+1:])
			}
		}
	}
}

func FuzzReaderAgreesWithBloblang(f *testing.F) {
	for i, doc := range documents {
		if len(doc) < 2000 {
			f.Add(doc, documents[(i+1)%len(documents)])
		}
	}
	for _, docs := range alike {
		for _, doc := range docs {
			f.Add(docs[0], doc)
		}
	}
	a := newAgreement(f, []kind{asValue}, paths[:12]...)
	f.Fuzz(func(t *testing.T, one, other string) { a.check(t, one, other, one) })
}

// texts are expressions around the edge of what is read without Bloblang.
var texts = []string{
	`this`, ` this.a `, "this.a # comment", "\nthis.a\n", `this.a.b.c`, `this."a"`, `this."a.b"`, `this.a."x y".0`, `this.*`, `this."*"`, `this.a."*"`, `this.a."*".b`, `this.a.00`, `this.a.+1`, `this.a."+1"`, `this.a."-0"`, `this.a."01"`, `this.a.-1`,
	`this .a`, `this. a`, "this.\na", `this.a.`, `this..a`, `thisa`, `this_a`, `this.a b`, `this.a()`, `this.a.b()`, `this.a.string()`, `this.(a)`, `this.a.(b)`, `this.a.(this.b)`, `this.map_each(this)`, `this."a\u0062"`, `this."\x61"`, `this."\q"`, `this.'a'`, `this."a`, "this.`a`", `this.""`, `this."".""`,
	`a`, `a.b`, `root`, `root.a`, `$a`, `this.a | 1`, `this.a + 1`, `-this.a`, `!this.a`, `(this.a)`, `{"a":this.a}`, `[this.a]`,
	`@k`, `@n`, `@missing`, `@"k"`, `@"k x"`, `@`, `@k.a`, `@"".a`, `@""`, `@ k`, `metadata("k")`, `metadata("n")`, `metadata("missing")`, `metadata()`, `metadata("")`, `metadata( "k" )`, `metadata("k").string()`, `metadata(this.a)`, `meta("k")`,
	`1`, `-1`, `1.5`, `-1.5`, `1.0`, `0`, `-0`, `-0.0`, `1e5`, `01`, `1.`, `.5`, `9223372036854775807`, `-9223372036854775808`, `9223372036854775808`, `true`, `false`, `null`, `truex`, `true.string()`, `"x"`, `"a\nb"`, `"\u00e9"`, `"""x"""`, `"x" + "y"`, `"2023-11-14T22:13:20Z"`, `"12"`, `[]`, `{}`, `[1]`,
	`@k == "orders"`, `@k != "orders"`, `@k=="orders"`, `@n == "7"`, `@n != "7"`, `@missing == "x"`, `@missing != "x"`, `this.a == "a"`, `this.a != "text"`, `this.a == "text" && this.b == 1`, `this.a == "text".uppercase()`, `this.a == 1`, `this.a == null`, `this.a ==`, `"a" == this.a`, `this == "a"`, `this.a == "1e400"`, `this.a = "x"`, `this.a == "text" # x`, "this.a ==\n\"text\"",
	`this.a > 1`, `this.a >= 1`, `this.a < 1`, `this.a <= 1`, `this.a == 1.0`, `this.a != 1`, `this.a>-1`, `this.a > - 1`, `this.a > 0.1`, `this.a == 9007199254740992`, `this.a > 9223372036854775807`, `this.a < 9007199254740993.0`, `this.a == -0`, `this.a > 1 && true`, `this.a < "m"`, `this.a >= "text"`, `@k > "a"`, `@n > 6`, `@n == 7.0`, `@missing > 1`, `@bad == "x"`, `this.a > 1e3`, `this.a =! 1`, `this.a <> 1`, `this.a === 1`, `this.a > this.b`, `this.a > 1.`, `@nan == "x"`, `@nan > 1`, `@bad`, `@nan`, `@when`, `@when == "2023-11-14T22:13:20Z"`, `@big`, `@big > 1`, `@float == 1`, `@object`,
	`deleted()`, `nothing()`, `if this.a == 1 { "one" } else { "other" }`, `if this.a == 1 { deleted() }`, `match this.a { 1 => "one", _ => this.b }`, `this.a.or("none")`, `throw("no")`, `content()`, `batch_index()`, `root = this.a`, "let x = this.a\nroot = $x", "root.v = this.a\nroot.w = 2", `root = deleted()`, `let x = 1`, `meta x = "y"`, "root = this.a # end", `map m { root = this.a }` + "\nroot = this.apply(\"m\")",
	``, ` `, `)`, `this.a)`, `this.a) + (1`, `# comment`, `this.a, this.b`, `this.a}`, "\x00", "\xff", `é`,
}

// TestShortcutsAgreeWithBloblang asks whatever compiles of every document.
func TestShortcutsAgreeWithBloblang(t *testing.T) {
	for _, text := range texts {
		checkText(t, text, documents)
	}
}

func FuzzShortcutsAgreeWithBloblang(f *testing.F) {
	for i, text := range texts {
		f.Add(text, documents[i%len(documents)])
	}
	f.Fuzz(func(t *testing.T, text, doc string) {
		checkText(t, text, []string{doc, `{"a":"text","b":1}`, `{"a":{"b":{"c":1},"0":2}}`, `{"a":[1,{"b":2}]}`})
	})
}

// checkText leaves out what is no shortcut: it would compare Bloblang with
// itself, and may well not be a function of the document.
func checkText(t *testing.T, text string, docs []string) {
	s := NewSet()
	slot, err := s.Value("field", text)
	if err != nil {
		return
	}
	if _, ok := s.cells[slot.cell].source.(*mapping); ok {
		return
	}
	a := newAgreement(t, []kind{asValue}, text)
	a.check(t, docs...)
}
