package processors_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// The log says why a row is left out, since an error on a message is not seen by
// somebody who looks at what comes out.
func TestReasonsAreLogged(t *testing.T) {
	for name, c := range map[string]struct {
		list string
		said []string
	}{
		"no event time": {`{ watermark: { event_time: this.time } }, { tumbling_window: { size: 10s, aggregates: { n: count() } } }`,
			[]string{`the first invalid row of watermark "watermark": event_time: this.time is null or missing`}},
		"milliseconds as seconds": {`{ watermark: { event_time: this.ms } }, { tumbling_window: { size: 10s, aggregates: { n: count() } } }`,
			[]string{`event time out of range: 1772442000000 read as unit s`, `likely the unit is ms`}},
		"text in a sum": {`{ watermark: { event_time: this.ts } }, { tumbling_window: { size: 10s, aggregates: { s: sum(this.k) } } }`,
			[]string{`bad argument of sum(this.k): this.k is the text "a"`}},
		"late": {`{ watermark: { event_time: this.ts } }, { tumbling_window: { size: 10s, aggregates: { n: count() } } }`,
			[]string{`the first late row of tumbling_window "tumbling_window": its event time lies 1m29s behind the watermark`}},
		"having": {`{ watermark: { event_time: this.ts } }, { tumbling_window: { size: 10s, aggregates: { n: count() }, having: this.n } }`,
			[]string{`the first row that tumbling_window "tumbling_window" emits with an error: having: this.n is the number 1, allowed are true and false`}},
		"on_event": {`{ watermark: { event_time: this.ts } }, { keyed_state: { key: this.k, on_event: root = 5 } }`,
			[]string{`the first invalid row of keyed_state "keyed_state": on_event: root is 5: `}},
		"emit": {`{ watermark: { event_time: this.ts } }, { keyed_state: { key: this.k, on_event: 'root.emit = { "n": 1 }' } }`,
			[]string{`root.emit is {"n":1}: root.emit is a list of rows`}},
		"on_timer": {`{ watermark: { event_time: this.ts } }, { keyed_state: { key: this.k, on_event: 'root.timers = [ { "name": "x", "at": this.event_time + 1 } ]', on_timer: root = 7 } }`,
			[]string{`the first row that keyed_state "keyed_state" emits with an error: timer "x"`, `root is 7: `}},
	} {
		t.Run(name, func(t *testing.T) {
			p := pipe(t, hostInput("", c.list))
			send(t, p, `{"k":"a","ts":1,"ms":1772442000000}`)
			send(t, p, `{"k":"b","ts":90,"ms":1772442000000}`)
			send(t, p, `{"k":"a","ts":1,"ms":1772442000000}`)
			require.NoError(t, p.Stop())
			for _, part := range c.said {
				require.Contains(t, said(p), part)
			}
		})
	}
}

// said is the log, whose quotes are quoted there.
func said(p *drive.Pipe) string { return strings.ReplaceAll(p.Logs.String(), `\"`, `"`) }

// What stands alone in a pipeline is named by its own name.
func TestReasonOfAnOperatorWithoutWatermark(t *testing.T) {
	p := pipe(t, "input: FEED\npipeline:\n  threads: 1\n  processors: [ { tumbling_window: { size: 10s, aggregates: { n: count() } } } ]\noutput: SINK\n")
	send(t, p, `{"ts":1}`)
	arrive(t, p, 1)
	require.NoError(t, p.Stop())
	require.Contains(t, said(p), `the first invalid row of tumbling_window "tumbling_window": the message has passed no watermark`)
}

// A deduplication that finds nothing says so at the start.
func TestDedupeWithoutTime(t *testing.T) {
	for list, warned := range map[string]bool{
		"{ watermark: { event_time: this.ts } }, { watermark_dedupe: { key: this.k } }":                        true,
		"{ watermark: { event_time: this.ts, delay: 1s } }, { watermark_dedupe: { key: this.k } }":             false,
		"{ watermark: { event_time: this.ts } }, { watermark_dedupe: { key: this.k, within: 1s } }":            false,
		"{ watermark: { event_time: this.ts } }, { watermark_dedupe: { key: this.k, with_event_time: true } }": false,
	} {
		p := pipe(t, hostInput("", list))
		send(t, p, `{"k":"a","ts":1}`)
		arrive(t, p, 1)
		require.NoError(t, p.Stop())
		require.Equal(t, warned, strings.Contains(said(p), `watermark_dedupe "watermark_dedupe": within is missing`), list)
	}
}
