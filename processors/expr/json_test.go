package expr

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	seedFlag   = flag.Uint64("expr.seed", 0, "seed of the random documents; 0 takes the time")
	randomFlag = flag.Int("expr.random", 20000, "number of random documents")
)

// jsonCheck is the quick half of the agreement: what the reader cuts out is what
// encoding/json decodes.
type jsonCheck struct {
	set     *Set
	sources []*path
	frame   Frame
	spans   []span
}

func newJSONCheck(t testing.TB) *jsonCheck {
	c := &jsonCheck{set: NewSet()}
	for _, text := range paths {
		slot, err := c.set.Value("field", text)
		require.NoError(t, err)
		c.sources = append(c.sources, c.set.cells[slot.cell].source.(*path))
	}
	c.spans = make([]span, c.set.paths.leaves)
	return c
}

// run reads documents one after the other with a reader that is new.
func (c *jsonCheck) run(t *testing.T, docs ...string) {
	c.frame.reader.reset(&c.set.paths)
	c.frame.texts = new(recent)
	for _, doc := range docs {
		ok := c.frame.reader.read(&c.set.paths, []byte(doc), c.spans)
		if want := simple(doc); ok != want {
			t.Fatalf("%q: accepted is %v, JSON is %v", doc, ok, want)
		}
		if !ok {
			continue
		}
		root := decode(t, doc)
		for i, p := range c.sources {
			var got, want item
			c.frame.cut([]byte(doc), c.spans[p.leaf], &got)
			require.NoError(t, want.set(walk(root, p.steps)))
			if !same(t, want, got) {
				t.Fatalf("%s of %q: %+v, JSON has %+v", paths[i], doc, got, want)
			}
		}
	}
}

func decode(t *testing.T, doc string) (v any) {
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

// same compares items, one made from Go values and one cut from a document.
func same(t *testing.T, want, got item) bool {
	switch got.token {
	case none:
		return want.token == null
	case container:
		return want.token == goContainer && fmt.Sprint(want.any) == fmt.Sprint(decode(t, got.text))
	case null, boolTrue, boolFalse:
		return want.token == got.token
	}
	return want.token == got.token && want.text == got.text
}

// A document is read alike when it is new and when its keys were seen before.
func FuzzReaderAgreesWithJSON(f *testing.F) {
	for i, doc := range documents {
		if len(doc) < 2000 {
			f.Add(doc, documents[(i*7+1)%len(documents)])
		}
	}
	for _, docs := range alike {
		for _, doc := range docs {
			f.Add(docs[0], doc)
		}
	}
	c := newJSONCheck(f)
	f.Fuzz(func(t *testing.T, one, other string) { c.run(t, one, other, one) })
}

func TestReaderAgreesOnRandomDocuments(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-expr.seed=%d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 1))}
	c := newJSONCheck(t)
	for range *randomFlag / 4 {
		c.run(t, g.document(), g.document(), g.document(), g.document())
	}
}

// generator makes documents that are near to JSON.
type generator struct{ *rand.Rand }

func (g generator) document() string { return g.damage(g.blank() + g.value(4) + g.blank()) }

// damage changes a document half of the time.
func (g generator) damage(text string) string {
	doc := []byte(text)
	for g.IntN(2) == 0 && len(doc) > 0 {
		at := g.IntN(len(doc))
		switch g.IntN(4) {
		case 0:
			doc = doc[:at]
		case 1:
			doc = append(doc[:at], doc[at+1:]...)
		case 2:
			doc[at] = g.one("\"\\{}[],:0-e.u \x1f\x80\xc3\xff")[0]
		default:
			doc[at] = byte(g.IntN(256))
		}
	}
	return string(doc)
}

func (g generator) one(letters string) string { return string(letters[g.IntN(len(letters))]) }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g generator) blank() string { return g.pick("", "", "", "", " ", "\n", "\t ", "\r\n") }

func (g generator) value(depth int) string {
	switch n := g.IntN(10); {
	case depth > 0 && n < 4:
		return g.members("{", "}", func() string { return g.key() + g.blank() + ":" + g.blank() + g.value(depth-1) })
	case depth > 0 && n < 6:
		return g.members("[", "]", func() string { return g.value(depth - 1) })
	case n < 8:
		return g.text()
	case n < 9:
		return g.pick("null", "true", "false")
	}
	return g.pick("", "-") + g.pick("0", "7", "42", "1700000000", "9007199254740993", "18446744073709551615") + g.pick("", "", ".5", ".25e1") + g.pick("", "", "e3", "E-2", "e+400")
}

func (g generator) members(open, end string, member func() string) string {
	b := open + g.blank()
	for i := range g.IntN(5) {
		if i > 0 {
			b += "," + g.blank()
		}
		b += member() + g.blank()
	}
	return b + end
}

func (g generator) key() string {
	return g.pick(`"a"`, `"a"`, `"b"`, `"c"`, `"0"`, `"1"`, `"a.b"`, `"x y"`, `""`, `"é"`, `"\u0061"`, `"longer_key_name"`, `"another_longer_key_name"`, `"\"\\"`)
}

func (g generator) text() string {
	b := `"`
	for range g.IntN(6) {
		b += g.pick("a", "plain text", "é", "日本語", "😀", `\n`, `\"`, `\\`, `\/`, `\u00e9`, `\ud83d\ude00`, `\ud800`, `\udc00`, `\u0000`, "{", "]", ",")
	}
	return b + `"`
}
