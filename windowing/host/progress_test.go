package host

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing"
)

// foreignStage stands before the last of the stages.
func foreignStage(stages []windowing.Stage) []windowing.Stage {
	last := len(stages) - 1
	return append(append([]windowing.Stage{}, stages[:last]...), windowing.Stage{Foreign: true, Kind: "foreign"}, stages[last])
}

// processor is a foreign processor that a test holds up.
type processor struct {
	called chan []windowing.Row // takes the rows of every call
	result chan foreignResult   // gives what becomes of them
}

func newProcessor() *processor {
	return &processor{called: make(chan []windowing.Row, 100), result: make(chan foreignResult)}
}

func (p *processor) run(ctx context.Context, _ int, rows []windowing.Row) ([]windowing.Row, error) {
	p.called <- rows
	select {
	case res := <-p.result:
		return res.rows, res.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Rows that fill the outbox are committed although more batches wait: else nobody
// could read them, and nothing would be taken any more.
func TestFullOutboxIsCommitted(t *testing.T) {
	r := newRig(t, passes, func(c *Config) { c.Limits.UnreadRows = 10 })
	h := newHost(r.config())
	r.Host = h
	o := newOwner(h)
	require.NoError(t, o.restore())
	for i := range int64(20) {
		r.offer(events(i*4, at(i, "a"), at(i, "b"), at(i, "c"), at(i, "d")))
	}
	go o.run()
	defer r.close()
	r.take(80)
}

// A step that comes back from a foreign processor when the outbox is full is not
// saved half done.
func TestFullOutboxAndForeignStage(t *testing.T) {
	p := newProcessor()
	r := newRig(t, func() []windowing.Stage { return foreignStage(passes()) }, func(c *Config) {
		c.Foreign, c.Limits.UnreadRows = p.run, 2
	}).open()
	r.offer(events(0, at(0, "a"), at(0, "b")))
	p.result <- foreignResult{rows: <-p.called}
	first := r.next()
	require.Len(t, first.Messages, 2)
	committed := r.disk.commits()

	r.offer(events(2, at(1, "c")))
	rows := <-p.called
	first.Settle(first.All())
	require.Eventually(t, func() bool { return r.meter.count(Nacked) == 2 }, patience, time.Millisecond)
	p.result <- foreignResult{rows: rows}
	require.Eventually(t, func() bool { return r.disk.commits() > committed }, patience, time.Millisecond)

	r = r.kill()
	acked := r.offer(events(2, at(1, "c")))
	var keys []string
	for _, n := range r.take(3) {
		keys = append(keys, n.key)
	}
	require.ElementsMatch(t, []string{"a", "b", "c"}, keys)
	r.wait(acked, "the redelivery")
}
