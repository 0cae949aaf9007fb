package expr

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// alike are documents of one shape, and beside them some that nearly have it.
var alike = [][]string{
	{`{"a":1,"b":"x"}`, `{"a":"x","b":1}`, `{"a":null,"b":true}`, `{"a":"1\"","b":"\u0062"}`, `{"a":-0.5e7,"b":""}`, `{"a":1,"b":"x"} `, `{"a":1,"b":x}`, `{"a":1,"b":"x}`, `{"a":1,"b":"x"`, `{"a":1,"b":`, `{"a":{},"b":"x"}`, `{"a":01,"b":"x"}`, `{"a":1 ,"b":"x"}`, `{"a":12"b":"x"}`, "{\"a\":\"\xff\",\"b\":1}", "{\"a\":\"\n\",\"b\":1}", `{"a":1,"b":"x"}}`, `{"a":,"b":"x"}`},
	{`{"a":1,"a":2}`, `{"a":"first","a":"last"}`, `{"a":"first","a":x}`, `{"a":1,"a":2,"a":3}`},
	{`{"a":{"b":1},"a":2}`, `{"a":{"b":"x"},"a":null}`, `{"a":2,"a":{"b":1}}`},
	{`{"a":1,"a":{"b":2}}`, `{"a":"x","a":{"b":"y"}}`},
	{`{"\u0061":1,"a\"":2}`, `{"\u0061":"x","a\"":"y"}`, `{"a":1,"a\"":2}`},
	{` [ "zero" , { "b" : 1 } ] `, ` [ 0 , { "b" : "x" } ] `, ` [ "zero", { "b" : 1 } ] `},
	{`{"a":[1,[true,false],{"b":"c"}],"b":{}}`, `{"a":["x",[null,0],{"b":1}],"b":{}}`, `{"a":["x",[null,0],{"b":1}],"b":[]}`},
	{`1`, `"x"`, `null`, `true`, `tru`, `12`, `1 `, ``, `{}`},
	{`{}`, `{}`, `{} `, `{`, `[]`},
	{`"a"`, `":"`, `"\\"`, `"a":1`},
	{`{"a":":","b":"x:"}`, `{"a":"\":","b":1}`},
}

func TestShapesAgreeWithBloblang(t *testing.T) {
	a := newAgreement(t, []kind{asValue}, paths...)
	for _, docs := range alike {
		a.check(t, docs...)
		c := newJSONCheck(t)
		for _, first := range docs {
			c.run(t, append([]string{first}, docs...)...)
		}
	}
}

// The second document of a shape is read by it, and so is the one after a stranger.
func TestShapeIsUsed(t *testing.T) {
	s := NewSet()
	_, err := s.Value("field", "this.a.b")
	require.NoError(t, err)
	var r reader
	r.reset(&s.paths)
	spans := make([]span, 1)
	read := func(doc string) bool {
		require.True(t, r.read(&s.paths, []byte(doc), spans), doc)
		return r.waits == patience
	}
	require.True(t, read(`{"a":{"b":1},"c":"x"}`), "the first one makes the shape")
	r.waits = 0
	require.True(t, read(`{"a":{"b":"two"},"c":null}`))
	require.Equal(t, span{start: 11, end: 14, token: str}, spans[0])
	require.False(t, read(`{"c":null}`))
	require.Equal(t, span{}, spans[0])
	require.True(t, read(`{"a":{"b":false},"c":3.5}`))
	for range patience {
		require.False(t, read(`{"c":null}`))
	}
	require.True(t, read(`{"c":7}`), "another one has become usual")
	require.True(t, r.shape.read([]byte(`{"c":"x"}`), spans))
	require.False(t, r.shape.read([]byte(`{"a":{"b":1},"c":"x"}`), spans))
}

// There is no shape of what a path reads whole, nor of what is large.
func TestShapelessDocuments(t *testing.T) {
	s := NewSet()
	_, err := s.Value("field", "this.a")
	require.NoError(t, err)
	for _, doc := range []string{
		`{"a":{"b":1}}`, `{"a":[]}`,
		`[` + strings.Repeat(`1,`, maxSteps) + `1]`,
		`{"` + strings.Repeat("k", maxShapeText) + `":1}`,
	} {
		var r reader
		r.reset(&s.paths)
		require.True(t, r.read(&s.paths, []byte(doc), make([]span, 1)))
		require.False(t, r.shape.known, "%.20s", doc)
		require.False(t, r.shape.read([]byte(doc), make([]span, 1)))
	}
	var r reader
	r.reset(&s.paths)
	require.True(t, r.read(&s.paths, []byte(`[`+strings.Repeat(`1,`, maxSteps-1)+`1]`), make([]span, 1)))
	require.True(t, r.shape.known)
}

func TestRandomShapesAgree(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-expr.seed=%d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 2))}
	c := newJSONCheck(t)
	hits := 0
	for range *randomFlag / 5 {
		one := g.family(4)
		c.run(t, one(), one(), g.damage(one()), one(), g.damage(one()))
		if c.frame.reader.shape.known {
			hits++
		}
	}
	require.Greater(t, hits, *randomFlag/50)
}

// family gives documents that differ in their scalars only.
func (g generator) family(depth int) func() string {
	front, back := g.blank(), g.blank()
	n := g.IntN(8)
	if depth == 0 || n < 4 {
		return func() string { return front + g.value(0) + back }
	}
	open, end := "{", "}"
	if n < 6 {
		open, end = "[", "]"
	}
	var parts []func() string
	for i := range g.IntN(4) {
		key, value := "", g.family(depth-1)
		if i > 0 {
			key = ","
		}
		if open == "{" {
			key += g.blank() + g.key() + g.blank() + ":"
		}
		parts = append(parts, func() string { return key + value() })
	}
	return func() string {
		text := front + open
		for _, part := range parts {
			text += part()
		}
		return text + end + back
	}
}
