package kafka

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Faults that go on are said again after a while that doubles from the first to
// the second of these.
const (
	nagFirst = 10 * time.Second
	nagLast  = 5 * time.Minute
)

// nag says lasting faults at once and then again now and then. Any goroutine may
// call it.
type nag struct {
	say func(format string, v ...any)

	mu   sync.Mutex // protects said
	said map[string]*nagged
}

type nagged struct {
	due  time.Time
	wait time.Duration
}

func newNag(say func(format string, v ...any)) *nag {
	return &nag{say: say, said: map[string]*nagged{}}
}

// about says a fault unless the same one about the same thing was said a short
// time ago.
func (n *nag) about(thing string, err error) {
	if ours(err) {
		return
	}
	if n.due(thing+": "+err.Error(), time.Now()) {
		n.say("%s: %v", thing, err)
	}
}

// ours reports an error that comes of closing a client.
func ours(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "operation was canceled")
}

func (n *nag) due(text string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.said[text]
	switch {
	case s == nil:
		n.forget(now)
		s = &nagged{wait: nagFirst}
		n.said[text] = s
	case now.Before(s.due):
		return false
	default:
		s.wait = min(2*s.wait, nagLast)
	}
	s.due = now.Add(s.wait)
	return true
}

// forget drops what was not heard of for long.
func (n *nag) forget(now time.Time) {
	for text, s := range n.said {
		if now.Sub(s.due) > nagLast {
			delete(n.said, text)
		}
	}
}
