package kv

// SubWriter returns a Writer whose keys are put behind prefix: a table of its
// own inside w. A Delete to the end ends with the prefix. Use it from one
// goroutine at a time.
func SubWriter(w Writer, prefix string) Writer {
	switch w := w.(type) {
	case *subWriter:
		return SubWriter(w.w, string(w.prefix)+prefix)
	case *Batch:
		return &subWriter{w: w, batch: w, bounds: newBounds(prefix)}
	}
	return &subWriter{w: w, bounds: newBounds(prefix)}
}

// SubReader returns a Reader of the keys that begin with prefix, seen without
// it. It is as concurrent as r.
func SubReader(r Reader, prefix string) Reader {
	return &subReader{r: r, bounds: newBounds(prefix)}
}

type bounds struct{ prefix, end []byte }

func newBounds(prefix string) bounds {
	return bounds{prefix: []byte(prefix), end: PrefixEnd([]byte(prefix))}
}

// appendTo writes where a range that ends at to ends in the outer keys.
func (p bounds) appendTo(dst, to []byte) []byte {
	if len(to) == 0 {
		return append(dst, p.end...)
	}
	return append(append(dst, p.prefix...), to...)
}

type subWriter struct {
	bounds
	w     Writer
	batch *Batch // w, where it is one: keys are then joined in it
	// a and b hold the outer keys of one call; a Writer copies what it keeps.
	a, b []byte
}

func (s *subWriter) Put(key, value []byte) {
	if s.batch != nil {
		s.batch.put(s.prefix, key, value)
		return
	}
	s.a = append(append(s.a[:0], s.prefix...), key...)
	s.w.Put(s.a, value)
}

func (s *subWriter) Delete(from, to []byte) {
	s.a = append(append(s.a[:0], s.prefix...), from...)
	s.b = s.appendTo(s.b[:0], to)
	s.w.Delete(s.a, s.b)
}

type subReader struct {
	bounds
	r Reader
}

func (s *subReader) outer(key []byte) []byte {
	return append(append(make([]byte, 0, len(s.prefix)+len(key)), s.prefix...), key...)
}

func (s *subReader) Get(key []byte) ([]byte, error) { return s.r.Get(s.outer(key)) }

func (s *subReader) Scan(from, to []byte, visit func(key, value []byte) error) error {
	return s.r.Scan(s.outer(from), s.appendTo(nil, to), func(key, value []byte) error {
		return visit(key[len(s.prefix):], value)
	})
}
