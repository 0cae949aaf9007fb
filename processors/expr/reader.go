package expr

// token says what a span or an item holds.
type token uint8

// The tokens. none is a path that leads nowhere; Bloblang reads it as null.
const (
	none token = iota
	null
	boolTrue
	boolFalse
	number    // text is its JSON text
	integer   // the same, written without fraction and exponent
	str       // text is what it says, escapes resolved
	container // an object or a list; text is its JSON
	goInt     // from here on only from Go values
	goUint    // beyond int64; text is its decimal
	goFloat
	goTime
	goContainer
)

// span is where in a document a value stands: of a string the inside.
type span struct {
	start, end uint32
	token      token
	escaped    bool
}

// maxDocument keeps indexes within a span.
const maxDocument = 1<<31 - 1

// reader reads the values of many paths in one pass over a document, and checks
// all of it. It accepts a document only if encoding/json does, and reads what
// encoding/json with UseNumber would; what it is not sure of it refuses.
//
// There are two ways. A document that has the shape of an earlier one is read by
// that (see shape), any other by going down into it. They agree.
type reader struct {
	doc     []byte
	spans   []span // by leaf
	shape   shape
	waits   int        // documents that may still miss the shape
	orders  [][]member // by node: the keys of the last object there
	scratch []byte     // keys with escapes
}

// member is a key in the order in which objects had it: the documents of a
// stream look alike, so that the next key is known before it is read.
type member struct {
	text []byte // as it stood, with quotes and colon
	node *node  // nil: nobody asks for it
}

// longestOrder bounds the keys of an object that are remembered, and their
// length.
const longestOrder = 64

// reset makes the reader ready for the documents of a tree.
func (r *reader) reset(t *tree) {
	r.doc, r.spans = nil, nil
	r.orders = zeroed(r.orders, len(t.nodes))
	r.shape, r.waits = shape{}, 0
}

// read fills spans (one for each leaf) and says whether the document was
// accepted.
func (r *reader) read(t *tree, doc []byte, spans []span) bool {
	if len(doc) > maxDocument {
		return false
	}
	clear(spans)
	if r.shape.read(doc, spans) {
		r.waits = patience
		return true
	}
	clear(spans)
	r.doc, r.spans = doc, spans
	i := r.value(t.nodes[0], space(doc, 0), 0)
	if i < 0 || space(doc, i) != len(doc) {
		return false
	}
	if r.waits--; r.waits < 0 {
		r.shape.learn(doc, spans)
		r.waits = patience
	}
	return true
}

// value reads the value of a node; depth containers are open around it.
func (r *reader) value(n *node, i, depth int) int {
	b, start := r.doc, i
	if i >= len(b) {
		return fail
	}
	var got span
	if b[i] == '{' || b[i] == '[' {
		i = r.container(n, i, depth)
		got = span{start: uint32(start), end: uint32(i), token: container}
	} else {
		got, i = scanScalar(b, i)
	}
	if n.leaf != noLeaf && i >= 0 {
		r.spans[n.leaf] = got
	}
	return i
}

// container reads an object or a list, and looks inside if paths lead on.
func (r *reader) container(n *node, i, depth int) int {
	switch {
	case len(n.children) == 0:
		return skip(r.doc, i, depth)
	case depth == maxDepth:
		return fail
	case r.doc[i] == '{':
		return r.object(n, i+1, depth+1)
	}
	return r.list(n, i+1, depth+1)
}

// object reads the members of an object behind its bracket.
func (r *reader) object(n *node, i, depth int) int {
	b := r.doc
	if i = space(b, i); i < len(b) && b[i] == '}' {
		return i + 1
	}
	order := &r.orders[n.id]
	for at := 0; i < len(b); at++ {
		var next *node
		if at, next, i = r.key(n, order, at, i); i < 0 {
			return fail
		}
		if i < len(b) && b[i] <= ' ' {
			i = space(b, i)
		}
		if next != nil {
			i = r.member(next, i, depth)
		} else {
			i = skip(b, i, depth)
		}
		if i < 0 {
			return fail
		}
		if i < len(b) && b[i] <= ' ' {
			i = space(b, i)
		}
		if i < len(b) && b[i] == '}' {
			return i + 1
		}
		if i == len(b) || b[i] != ',' {
			return fail
		}
		if i++; i < len(b) && b[i] <= ' ' {
			i = space(b, i)
		}
	}
	return fail
}

// key reads a key and its colon and finds the child it leads to. It looks first
// whether the key is the one expected at this place, or the one after it: some
// keys are not in every object.
func (r *reader) key(n *node, order *[]member, at, i int) (int, *node, int) {
	b := r.doc
	at = min(at, len(*order)) // some keys are not remembered
	for k := at; k < len(*order) && k < at+2; k++ {
		m := &(*order)[k]
		if end := i + len(m.text); end <= len(b) && string(b[i:end]) == string(m.text) {
			return k, m.node, end
		}
	}
	if i >= len(b) || b[i] != '"' {
		return at, nil, fail
	}
	end, escaped := scanString(b, i+1)
	if end < 0 {
		return at, nil, fail
	}
	key := b[i+1 : end]
	if escaped {
		r.scratch = unescape(r.scratch[:0], key)
		key = r.scratch
	}
	next, start := n.find(key), i
	if i = colon(b, end+1); i >= 0 && b[end+1] == ':' && end-start < longestOrder && at < longestOrder {
		if at == len(*order) {
			*order = append(*order, member{})
		}
		m := &(*order)[at]
		m.text, m.node = append(m.text[:0], b[start:end+2]...), next
	}
	return at, next, i
}

// member reads the value of a key that a path goes through. Of a key that is
// there twice the last value counts, with all that is below.
func (r *reader) member(n *node, i, depth int) int {
	if len(n.children) > 0 {
		for _, leaf := range n.below {
			r.spans[leaf] = span{}
		}
	}
	return r.value(n, i, depth)
}

// list reads the items of a list behind its bracket.
func (r *reader) list(n *node, i, depth int) int {
	b := r.doc
	if i = space(b, i); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for index := 0; i < len(b); index++ {
		if next := n.at(index); next != nil {
			i = r.value(next, i, depth)
		} else {
			i = skip(b, i, depth)
		}
		if i < 0 {
			return fail
		}
		if i = space(b, i); i < len(b) && b[i] == ']' {
			return i + 1
		}
		if i == len(b) || b[i] != ',' {
			return fail
		}
		i = space(b, i+1)
	}
	return fail
}
