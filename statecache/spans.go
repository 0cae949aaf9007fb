package statecache

import "github.com/connect-windowed/connect-windowed/statecache/internal/ordered"

// span is a deleted range from the key under which it stands; an empty to means
// the end of all keys.
type span struct {
	to   string
	rank uint64 // of the delete, see index
}

// spans are deleted ranges, disjoint, each with the rank of the newest delete of
// its keys. Deletes come in the order of their ranks.
type spans struct{ m ordered.Map[span] }

// add takes up the newest delete.
func (s *spans) add(from, to string, rank uint64) {
	if !before(from, to) {
		return
	}
	if c := s.m.Before(from); c.Valid() && c.Key() < from && before(from, c.Value().to) {
		old := *c.Value()
		c.Value().to = from
		if above(old.to, to) || old.to == "" && to != "" {
			s.m.Set(to, old)
		}
	}
	var rest span // of the last range that begins inside
	for c := s.m.Seek(from); c.Valid() && before(c.Key(), to); c.Next() {
		rest = *c.Value()
	}
	s.m.DeleteRange(from, to)
	if rest.rank != 0 && to != "" && (rest.to == "" || rest.to > to) {
		s.m.Set(to, rest)
	}
	s.m.Set(from, span{to, rank})
}

// covers says whether a range holds key, where that range ends and its rank.
func (s *spans) covers(key string) (to string, rank uint64, ok bool) {
	if s.m.Len() == 0 {
		return "", 0, false
	}
	c := s.m.Before(key)
	if !c.Valid() || !before(key, c.Value().to) {
		return "", 0, false
	}
	return c.Value().to, c.Value().rank, true
}

func (s *spans) hold(key string) bool {
	_, _, ok := s.covers(key)
	return ok
}

// mostJoined bounds what next looks at: there may be a range for each key.
const mostJoined = 64

// next returns the first range that ends after key, with some of those that follow it
// without a gap.
func (s *spans) next(key string) (from, to string, ok bool) {
	c := s.m.Before(key)
	if !c.Valid() || !before(key, c.Value().to) {
		c = s.m.Seek(key)
	}
	if !c.Valid() {
		return "", "", false
	}
	from, to = c.Key(), c.Value().to
	c.Next()
	for n := 1; n < mostJoined && to != "" && c.Valid() && c.Key() == to; n++ {
		to = c.Value().to
		c.Next()
	}
	return from, to, true
}

// spanFinder looks up keys that are often near each other: it remembers the range, or
// the gap between two, in which the last one was. The spans do not change meanwhile.
type spanFinder struct {
	*spans
	from, to string
	rank     uint64 // 0 in a gap
	known    bool
}

// find says whether a range holds key, and the rank of that.
func (f *spanFinder) find(key string) (rank uint64, ok bool) {
	if f.known && f.from <= key && before(key, f.to) {
		return f.rank, f.rank != 0
	}
	f.from, f.to, f.rank, f.known = "", "", 0, true
	if c := f.m.Before(key); c.Valid() {
		if before(key, c.Value().to) {
			f.from, f.to, f.rank = c.Key(), c.Value().to, c.Value().rank
			return f.rank, true
		}
		f.from = c.Value().to
	}
	if c := f.m.Seek(key); c.Valid() {
		f.to = c.Key()
	}
	return 0, false
}
