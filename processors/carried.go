package processors

import (
	"context"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// carried is what a row takes along in the context of its message, past
// processors that know nothing of it. The context survives mapping, branch,
// archive and unarchive, where metadata may be dropped or forged.
type carried struct {
	outer context.Context // the message's own
	row   windowing.Row   // without Message, Key and Args
	pair  *pair           // on the way between operators that stand on their own
	at    host.Position   // of a row that an operator on its own emitted
	step  *step           // of the operator on its own that gave the message
	inner bool            // the message is inside of a host
}

// pair is the instant that a watermark on its own hands to the operators behind
// it.
type pair struct {
	late, close watermark.Time
	now         watermark.Time // W of the domain
	of          *origin        // the watermark, never nil
	revised     string         // an operator upstream that may emit a row key twice
}

// step is one call of an operator on its own. Its messages may leave in several
// batches, which the next operator sees as one where positions are counted.
type step struct{ _ byte } // of a size, so that no two have one address

// origin is what operators have to know of the watermark before them.
type origin struct {
	sources []string      // their names, by index
	delay   time.Duration // the largest of them
	last    *call         // of the watermark, where it is durable, or nil
}

// source gives the name of the source of a row; ok is false for a row of none.
func (o *origin) source(index int32) (name string, ok bool) {
	if index < 0 || int(index) >= len(o.sources) {
		return "", false
	}
	return o.sources[index], true
}

type carriedKey struct{}

// carry puts a row into the context of its message.
func carry(m *service.Message, c *carried) *service.Message {
	c.outer = m.Context()
	if old := carriedBy(m); old != nil {
		c.outer = old.outer
	}
	return m.WithContext(context.WithValue(c.outer, carriedKey{}, c))
}

// carriedBy gives what a message carries, nil where it carries nothing.
func carriedBy(m *service.Message) *carried {
	c, _ := m.Context().Value(carriedKey{}).(*carried)
	return c
}

// unload takes what a message carries out of its context.
func unload(m *service.Message) *service.Message {
	if c := carriedBy(m); c != nil {
		return m.WithContext(c.outer)
	}
	return m
}
