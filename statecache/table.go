package statecache

import (
	"unsafe"

	"github.com/connect-windowed/connect-windowed/statecache/internal/ordered"
	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// table is what a generation of the log says, in key order. Keys and values
// are spans of the log records, which it keeps; nothing is copied.
//
// An entry of puts is newer than every range of deleted that holds it: a
// delete removes the puts in its range, and a later put does not cut the
// range. So a key found in puts has its value, else one inside a deleted range
// is gone, else the layers below decide.
type table struct {
	puts    ordered.Map[[]byte]
	deleted ranges
}

// apply enters the operations of a batch record, which must not change any
// more.
func (t *table) apply(batch []byte) error {
	return kv.ReadBatch(batch,
		func(key, value []byte) { t.puts.Set(text(key), value) },
		func(from, to []byte) {
			t.puts.DeleteRange(text(from), text(to))
			t.deleted.add(text(from), text(to))
		})
}

// items is the work that folding the table takes, roughly.
func (t *table) items() int { return t.puts.Len() + t.deleted.m.Len() }

// ranges is a set of disjoint half-open ranges, from -> to; an empty to means
// the end of all keys.
type ranges struct{ m ordered.Map[string] }

// add unites the set with [from, to).
func (r *ranges) add(from, to string) {
	if c := r.m.Before(from); c.Valid() && !above(from, *c.Value()) {
		from = c.Key()
	}
	c := r.m.Seek(from)
	for ; c.Valid() && !above(c.Key(), to); c.Next() {
		to = later(to, *c.Value())
	}
	rest := "" // the first range that stays, or the end
	if c.Valid() {
		rest = c.Key()
	}
	r.m.DeleteRange(from, rest)
	r.m.Set(from, to)
}

// covers says whether a range holds key, and where that range ends.
func (r *ranges) covers(key string) (to string, ok bool) {
	if r.m.Len() == 0 {
		return "", false
	}
	c := r.m.Before(key)
	if !c.Valid() || !before(key, *c.Value()) {
		return "", false
	}
	return *c.Value(), true
}

// next returns the first range that ends after key.
func (r *ranges) next(key string) (from, to string, ok bool) {
	if c := r.m.Before(key); c.Valid() && before(key, *c.Value()) {
		return c.Key(), *c.Value(), true
	}
	if c := r.m.Seek(key); c.Valid() {
		return c.Key(), *c.Value(), true
	}
	return "", "", false
}

// before, above and later compare with the end of a range, where the empty
// text is the end of all keys.
func before(key, to string) bool { return to == "" || key < to }
func above(key, to string) bool  { return to != "" && key > to }
func later(a, b string) string {
	if a == "" || b == "" {
		return ""
	}
	return max(a, b)
}

// text and raw see bytes as text and back without a copy. The bytes must not
// change while the text lives.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
func raw(s string) []byte  { return unsafe.Slice(unsafe.StringData(s), len(s)) }
