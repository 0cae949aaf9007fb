package windowing

import (
	"slices"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// sessionGroup holds the sessions of one group, in ascending order of their
// starts and of their ends.
type sessionGroup struct {
	key      string
	sessions []*session
	room     [1]*session // what most groups need
}

func newSessionGroup(key string) *sessionGroup {
	g := &sessionGroup{key: key}
	g.sessions = g.room[:0]
	return g
}

// insert puts a session into its place.
func (g *sessionGroup) insert(it *session) {
	at, _ := slices.BinarySearchFunc(g.sessions, it.bounds.Start, (*session).compareStart)
	g.sessions = slices.Insert(g.sessions, at, it)
}

// take takes a session out.
func (g *sessionGroup) take(it *session) {
	at, found := slices.BinarySearchFunc(g.sessions, it.bounds.Start, (*session).compareStart)
	if !found || g.sessions[at] != it {
		panic("windowing: a session is not in its group")
	}
	g.sessions = slices.Delete(g.sessions, at, at+1)
}

func (it *session) compareStart(t watermark.Time) int {
	switch {
	case it.bounds.Start < t:
		return -1
	case it.bounds.Start > t:
		return 1
	}
	return 0
}

// merge gives the session that takes a cover in, nil where there is none. What
// the cover joins becomes one session.
func (s *Session) merge(g *sessionGroup, cover Span) *session {
	if n := len(g.sessions); n > 0 && s.config.MaxDuration == 0 {
		// Most rows prolong the newest session. No other one touches them then.
		if last := g.sessions[n-1]; last.bounds.Start <= cover.Start && cover.Start <= last.bounds.End {
			last.bounds.End = max(last.bounds.End, cover.End)
			return last
		}
	}
	var keep *session
	for at := s.joinable(g, cover); at >= 0; at = s.joinable(g, cover) {
		other := g.sessions[at]
		g.sessions = slices.Delete(g.sessions, at, at+1)
		cover = cover.union(other.bounds)
		keep = s.unite(keep, other)
	}
	if keep == nil {
		return nil
	}
	earlier := cover.Start < keep.bounds.Start
	keep.bounds = cover
	g.insert(keep)
	if earlier {
		s.closings.moved(keep)
	}
	return keep
}

// joinable is the index of the first session that touches the cover and stays
// within the bound together with it, -1 where there is none.
func (s *Session) joinable(g *sessionGroup, cover Span) int {
	at, _ := slices.BinarySearchFunc(g.sessions, cover.Start, func(it *session, t watermark.Time) int {
		if it.bounds.End < t {
			return -1
		}
		return 1
	})
	for ; at < len(g.sessions) && g.sessions[at].bounds.Start <= cover.End; at++ {
		if s.within(cover.union(g.sessions[at].bounds)) {
			return at
		}
	}
	return -1
}

func (s *Session) within(bounds Span) bool {
	return s.config.MaxDuration == 0 || bounds.End.Sub(bounds.Start) <= s.config.MaxDuration
}

// union is the smallest span that holds both.
func (s Span) union(other Span) Span {
	return Span{Start: min(s.Start, other.Start), End: max(s.End, other.End)}
}

// unite lets the earlier of two sessions, one of which may be nil, take in what
// the other has seen. Both are out of their group's list; their bounds stay.
func (s *Session) unite(a, b *session) *session {
	if a == nil {
		return b
	}
	if b.bounds.Start < a.bounds.Start {
		a, b = b, a
	}
	for i, acc := range a.accumulators {
		acc.Merge(b.accumulators[i])
	}
	a.born = min(a.born, b.born)
	a.shown = append(a.shown, b.shown...)
	a.bounds = a.bounds.union(b.bounds)
	s.closings.remove(b)
	s.forget(b)
	b.into = a
	return a
}

// remove takes a session out of everything.
func (s *Session) remove(it *session) {
	it.group.take(it)
	s.closings.remove(it)
	s.leave(it)
}

// leave forgets a session that is out of its group's list and of the heap, and
// the group with the last one.
func (s *Session) leave(it *session) {
	if g := it.group; len(g.sessions) == 0 {
		delete(s.groups, g.key)
	}
	s.forget(it)
}

// forget lets go of what a session holds and has its record deleted.
func (s *Session) forget(it *session) {
	if it.stored.there {
		s.gone = append(s.gone, sessionName{group: it.group.key, id: it.id})
	}
	if it.pending {
		it.pending = false
		s.pending--
	}
	it.group, it.accumulators, it.shown = nil, nil, nil
}
