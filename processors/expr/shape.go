package expr

// shape is what the documents of a stream have in common: all that stands between
// the scalars of one of them. A document that differs from it in nothing but its
// scalars has its values at the same places, and is JSON if the scalars are, so
// that it is read by comparing what is between. Only a document that the reader
// has accepted becomes a shape; one that does not fit is left to the reader.
type shape struct {
	known bool
	steps []step
	tail  []byte // behind the last scalar
	text  []byte // that the others are parts of
}

// step is what stands in front of a scalar, and the path that ends at it.
type step struct {
	text []byte
	leaf int // noLeaf: nobody asks for it
}

// Bounds of a shape: larger documents are hardly ever alike.
const (
	maxSteps     = 64
	maxShapeText = 4 << 10
)

// patience is how many documents in a row may not fit before one of them becomes
// the shape: to learn one takes about as long as to read a document.
const patience = 32

// read fills spans, which are clear, if the document has the shape. If not, it
// has another one or is no JSON, and some spans may be filled.
func (s *shape) read(doc []byte, spans []span) bool {
	i := 0
	for k := range s.steps {
		next := &s.steps[k]
		start := i + len(next.text)
		if start >= len(doc) || string(doc[i:start]) != string(next.text) {
			return false
		}
		got, end := scanScalar(doc, start)
		if end < 0 {
			return false
		}
		if next.leaf != noLeaf {
			spans[next.leaf] = got
		}
		i = end
	}
	return s.known && string(doc[i:]) == string(s.tail)
}

// learn takes the shape of a document that the reader has accepted with these
// spans. There is none where a path ends at an object or a list.
func (s *shape) learn(doc []byte, spans []span) {
	s.known, s.steps, s.text = false, s.steps[:0], s.text[:0]
	for _, at := range spans {
		if at.token == container {
			return
		}
	}
	from := 0 // of s.text, where the next step begins
	for i := 0; i < len(doc); {
		end, scalar := i+1, false
		if c := doc[i]; c == '"' || c == '-' || c-'0' <= 9 || c-'a' < 26 {
			_, end = scanScalar(doc, i)
			scalar = c != '"' || colon(doc, end) < 0 // else it is a key
		}
		if !scalar {
			s.text = append(s.text, doc[i:end]...)
		} else {
			s.steps = append(s.steps, step{text: s.text[from:], leaf: leafAt(doc, i, spans)})
			from = len(s.text)
		}
		if i = end; len(s.steps) > maxSteps || len(s.text) > maxShapeText {
			s.steps = s.steps[:0]
			return
		}
	}
	s.known, s.tail = true, s.text[from:]
}

// leafAt gives the path that ends at the scalar at i. At one place ends one only.
func leafAt(doc []byte, i int, spans []span) int {
	if doc[i] == '"' {
		i++
	}
	for leaf, at := range spans {
		if at.token != none && int(at.start) == i {
			return leaf
		}
	}
	return noLeaf
}
