package expr

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReaderAgreesWithJSON is the quick half of the agreement: what the reader
// cuts out is what encoding/json decodes, in a document that is new and in one
// whose keys were seen before.
func FuzzReaderAgreesWithJSON(f *testing.F) {
	for i, doc := range documents {
		if len(doc) < 2000 {
			f.Add(doc, documents[(i*7+1)%len(documents)])
		}
	}
	s := NewSet()
	var sources []*path
	for _, text := range paths {
		slot, err := s.Value("field", text)
		require.NoError(f, err)
		sources = append(sources, s.cells[slot.cell].source.(*path))
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		var frame Frame
		frame.load(s, nil)
		frame.texts = new(recent)
		spans := make([]span, s.paths.leaves)
		for _, doc := range []string{one, other, one} {
			ok := frame.reader.read(&s.paths, []byte(doc), spans)
			require.Equal(t, simple(doc), ok, "%q", doc)
			if !ok {
				continue
			}
			root := decode(t, doc)
			for i, p := range sources {
				var got, want item
				frame.cut([]byte(doc), spans[p.leaf], &got)
				require.NoError(t, want.set(walk(root, p.steps)))
				same(t, want, got, "%s of %q", paths[i], doc)
			}
		}
	})
}

func decode(t *testing.T, doc string) (v any) {
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

// same compares items, one made from Go values and one cut from a document.
func same(t *testing.T, want, got item, message string, args ...any) {
	switch {
	case got.token == none:
		require.Equal(t, null, want.token, append([]any{message}, args...)...)
	case got.token == container:
		require.Equal(t, goContainer, want.token, append([]any{message}, args...)...)
		require.Equal(t, want.any, decode(t, got.text), append([]any{message}, args...)...)
	default:
		require.Equal(t, want.token, got.token, append([]any{message}, args...)...)
		if got.token >= number {
			require.Equal(t, want.text, got.text, append([]any{message}, args...)...)
		}
	}
}
