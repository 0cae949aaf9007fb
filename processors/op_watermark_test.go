package processors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/processors"
	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// A row belongs to exactly one source.
func TestRowsOfNoneAndOfTwoSources(t *testing.T) {
	clean(t)
	p := pipe(t, hostInput("", `{ watermark: { unit: ms, sources: {
		orders: { when: 'this.kind.contains("o")', event_time: this.ts },
		payments: { when: 'this.kind.contains("p")', event_time: this.at, unit: s } } } }, `+tens, "position: none"))
	send(t, p, `{"kind":"o","k":"a","ts":1000}`, `{"kind":"p","k":"a","at":2}`, `{"kind":"x","k":"a","ts":3000}`, `{"kind":"op","k":"a","ts":3000,"at":3}`, `{"k":"a","ts":3000}`)
	all := arrive(t, p, 3)
	require.ErrorContains(t, all[0].Err, "belongs to none of orders, payments")
	require.ErrorContains(t, all[1].Err, "belongs to orders and to payments")
	require.ErrorContains(t, all[2].Err, "sources.orders.when")
	send(t, p, `{"kind":"o","k":"z","ts":15000}`)
	require.Len(t, p.Sink.Messages(), 3, "payments hold W back")
	send(t, p, `{"kind":"p","k":"z","at":11}`)
	require.Equal(t, []string{`00:00:00 "k":"a","n":2}`}, counts(t, arrive(t, p, 4)[3:]))
}

// Where messages carry a partition W waits for others to speak, five seconds
// unless told otherwise; the end of the input ends the wait.
func TestGraceAtTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		fields string
		grace  time.Duration
	}{
		"by default": {"", 5 * time.Second},
		"set":        {", startup_grace: 20s", 20 * time.Second},
		"off":        {", startup_grace: 0s", 0},
		"none":       {", partition: none", 0},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			clock := drive.NewClock(time.Unix(1000, 0))
			defer processors.SetClockForTest(clock)()
			p := pipe(t, hostInput("", fmt.Sprintf("{ watermark: { event_time: this.ts%s } }, ", c.fields)+tens))
			message := func(offset int, payload string) {
				acked(t, p, p.Feed.Send(func() service.MessageBatch {
					m := service.NewMessage([]byte(payload))
					m.MetaSetMut("kafka_topic", "t")
					m.MetaSetMut("kafka_partition", 0)
					m.MetaSetMut("kafka_offset", offset)
					return service.MessageBatch{m}
				}, nil))
			}
			message(1, row(1, "a", 1))
			message(2, row(2, "z", 11))
			if c.grace > 0 {
				clock.Advance(c.grace - 1)
				message(3, row(3, "a", 2))
				require.Empty(t, p.Sink.Messages())
				clock.Advance(1)
				require.Equal(t, []string{`00:00:00 "k":"a","n":2}`}, counts(t, arrive(t, p, 1)))
				return
			}
			require.Equal(t, []string{`00:00:00 "k":"a","n":1}`}, counts(t, arrive(t, p, 1)))
		})
	}
	clean(t)
	p := pipe(t, hostInput("", `{ watermark: { event_time: this.ts, partition: this.k, startup_grace: 1h } }, `+tens, "position: none"))
	send(t, p, row(1, "a", 1), row(2, "a", 11))
	p.Feed.End()
	require.NoError(t, p.WaitEnd(patience))
	require.Equal(t, []string{`00:00:00 "k":"a","n":1}`}, counts(t, p.Sink.Messages()))
}

// Declared partitions are waited for by name or by number.
func TestDeclaredPartitions(t *testing.T) {
	for _, declared := range []string{"[ a, 7 ]", "2"} {
		t.Run(declared, func(t *testing.T) {
			clean(t)
			p := pipe(t, hostInput("", `{ watermark: { event_time: this.ts, partition: this.p, partitions: `+declared+` } }, `+tens, "position: none"))
			send(t, p, `{"p":"a","k":"a","ts":1}`, `{"p":"a","k":"a","ts":30}`)
			send(t, p, `{"p":"a","k":"a","ts":31}`)
			require.Empty(t, p.Sink.Messages())
			send(t, p, `{"p":7,"k":"b","ts":12}`)
			require.Equal(t, []string{`00:00:00 "k":"a","n":1}`}, counts(t, arrive(t, p, 1)))
		})
	}
}

// A row too far beyond the wall clock moves nothing.
func TestRowsFromTheFuture(t *testing.T) {
	clean(t)
	clock := drive.NewClock(time.Unix(100, 0))
	defer processors.SetClockForTest(clock)()
	p := pipe(t, hostInput("", `{ watermark: { event_time: this.ts, max_ahead: 10s } }, `+tens, "position: none"))
	send(t, p, row(1, "a", 100), row(2, "far", 110.5), row(3, "near", 109.5))
	m := arrive(t, p, 1)[0]
	require.Equal(t, row(2, "far", 110.5), string(m.Payload))
	for _, part := range []string{"1970-01-01T00:01:50.5Z", "max_ahead 10s", "1970-01-01T00:01:40Z", "raise max_ahead"} {
		require.ErrorContains(t, m.Err, part)
	}
}
