package processors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// on gives operators positions, and state in a file unless it is "".
func on(file, list string) string {
	fields := ": { " + byOffset + ", "
	if file != "" {
		fields += "state: store, "
	}
	return strings.NewReplacer("watermark: { ", "watermark"+fields, "_window: { ", "_window"+fields).Replace(list)
}

func TestOperatorsOnTheirOwn(t *testing.T) {
	for _, file := range []string{"", stateFile(t)} {
		t.Run(fmt.Sprint(file != ""), func(t *testing.T) {
			clean(t)
			between := counting[:strings.Index(counting, "}, ")] + `}, { mapping: "meta = deleted()\nroot = this" }, { mutation: 'root.k = this.k.uppercase()' }` + counting[strings.Index(counting, "}, ")+1:]
			p := pipe(t, pipelineOf(file, 1, on(file, between)))
			send(t, p, row(1, "a", 1), row(2, "b", 2))
			send(t, p, row(3, "z", 11.5))
			send(t, p, row(4, "a", 3), `{"o":5,"k":"x","ts":null}`)
			all := arrive(t, p, 4)
			require.Equal(t, []string{`00:00:00 "k":"A","n":1}`, `00:00:00 "k":"B","n":1}`}, counts(t, all[:2]))
			require.Equal(t, "1970-01-01T00:00:11.5Z", all[0].Get("windowed_watermark"))
			require.Equal(t, "tumbling_window", all[2].Get("windowed_late_operator"))
			require.Equal(t, `{"k":"A","o":4,"ts":3}`, string(all[2].Payload))
			require.ErrorContains(t, all[3].Err, "event_time")
		})
	}
}

// What an operator cannot see from where it stands is an error on the messages.
func TestOperatorsThatMissSomething(t *testing.T) {
	clean(t)
	p := pipe(t, pipelineOf("", 1, "{ tumbling_window: { size: 10s, aggregates: { n: count() } } }"))
	send(t, p, row(1, "a", 1))
	m := arrive(t, p, 1)[0]
	require.ErrorContains(t, m.Err, "passed no watermark")
	require.ErrorContains(t, m.Err, "put a watermark processor before this one")
	require.NoError(t, p.Stop())

	p = pipe(t, pipelineOf("", 1, mark, "{ tumbling_window: { name: first, size: 10s, output_mode: update, aggregates: { n: count() } } }", "{ tumbling_window: { name: second, size: 10s, aggregates: { n: count() } } }"))
	send(t, p, row(1, "a", 1))
	m = arrive(t, p, 1)[0]
	require.ErrorContains(t, m.Err, "first: an operator upstream may emit a row key twice")
	require.ErrorContains(t, m.Err, "output_mode append")
	require.NoError(t, p.Stop())

	p = pipe(t, pipelineOf("", 1, "{ watermark: { delay: 1s } }"))
	send(t, p, row(1, "a", 1))
	require.ErrorContains(t, arrive(t, p, 1)[0].Err, "set event_time")
	require.NoError(t, p.Stop())

	p = pipe(t, pipelineOf(stateFile(t), 1, mark, "{ tumbling_window: { size: 10s, state: store, aggregates: { n: count() } } }"))
	send(t, p, row(1, "a", 1))
	require.ErrorContains(t, arrive(t, p, 1)[0].Err, "position: none")
}

// windowOverWindow counts by k in windows of ten seconds, and the groups of those
// in windows of a minute.
const windowOverWindow = mark + `, { tumbling_window: { name: ten, size: 10s, group_by: { k: this.k }, aggregates: { n: count() }, late: pass } }, { tumbling_window: { name: minute, size: 1m, aggregates: { groups: count(), rows: sum(this.n) }, late: pass } }`

// Rows of one operator have a position for the next: with state in files nothing
// counts twice, whatever is refused and wherever the process stops.
func TestWindowOverWindow(t *testing.T) {
	for _, file := range []string{"", stateFile(t)} {
		t.Run(fmt.Sprint(file != ""), func(t *testing.T) {
			clean(t)
			conf := pipelineOf(file, 1, on(file, windowOverWindow))
			p := pipe(t, conf)
			asked := 0
			p.Sink.Refuse(func(batch []drive.Message) (no []int) {
				if asked++; asked%2 == 1 {
					for i := range batch {
						no = append(no, i)
					}
				}
				return no
			})
			var sent [][]string
			give := func(rows ...string) {
				sent = append(sent, rows)
				send(t, p, rows...)
			}
			for i := range 14 { // two minutes and twenty seconds
				give(row(3*i, "a", float64(10*i)), row(3*i+1, "b", float64(10*i+1)), row(3*i+2, "a", float64(10*i+2)))
			}
			want := []string{`"groups":12,"rows":18}`, `"groups":12,"rows":18}`}
			require.Equal(t, want, minutes(t, p))
			require.NoError(t, p.Stop())
			if file == "" {
				return
			}
			p = pipe(t, conf) // everything comes again
			for _, rows := range sent {
				send(t, p, rows...)
			}
			require.Equal(t, want, minutes(t, p))
			send(t, p, row(1000, "z", 1000))
			require.Equal(t, `"groups":4,"rows":6}`, minutes(t, p)[2])
		})
	}
}

// minutes gives the rows of the outer window.
func minutes(t testing.TB, p *drive.Pipe) (list []string) {
	for _, m := range p.Sink.Messages() {
		require.NoError(t, m.Err)
		require.Equal(t, "minute", m.Get("windowed_operator"), "%s %v", m.Payload, m.Meta)
		list = append(list, string(m.Payload[strings.Index(string(m.Payload), `"groups"`):]))
	}
	return list
}

// A crash between the commits of two operators: the second one has missed what
// the first one has committed, and hears it when the source sends it again.
func TestCrashBetweenOperators(t *testing.T) {
	clean(t)
	one, two, early := stateFile(t), stateFile(t), stateFile(t)
	conf := func(two string) string {
		return fmt.Sprintf(`
input: FEED
pipeline:
  threads: 1
  processors:
    - watermark: { event_time: this.ts, state: one, %s }
    - tumbling_window: { name: ten, state: one, %s, size: 10s, group_by: { k: this.k }, aggregates: { n: count() } }
    - tumbling_window: { name: minute, state: two, size: 1m, aggregates: { groups: count(), rows: sum(this.n) } }
output: SINK
cache_resources: [ { label: one, bbolt: { path: %s } }, { label: two, bbolt: { path: %s } } ]
`, byOffset, byOffset, one, two)
	}
	p := pipe(t, conf(two))
	send(t, p, row(1, "a", 1), row(2, "b", 2), row(3, "a", 3))
	require.NoError(t, drive.Snapshot(two, early))
	send(t, p, row(4, "a", 11))
	send(t, p, row(5, "a", 21))
	require.NoError(t, p.Stop())

	p = pipe(t, conf(early)) // the second file lies behind
	send(t, p, row(4, "a", 11))
	send(t, p, row(5, "a", 21))
	send(t, p, row(6, "a", 61))
	send(t, p, row(7, "a", 130))
	require.Equal(t, []string{`"groups":4,"rows":5}`}, minutes(t, p)[:1])
}

// A late row of one operator is none for those behind it, and keeps what it
// carries.
func TestLateRowsPassOperators(t *testing.T) {
	clean(t)
	p := pipe(t, pipelineOf("", 1, windowOverWindow, "{ watermark: { name: again } }", "{ tumbling_window: { name: hour, size: 1h, aggregates: { n: count() }, late: pass } }"))
	send(t, p, row(1, "a", 1))
	send(t, p, row(2, "a", 4000))
	send(t, p, row(3, "a", 2))
	require.Equal(t, 1, len(p.Sink.Messages()))
	m := arrive(t, p, 1)[0]
	require.Equal(t, map[string]any{"windowed_late_operator": "ten", "windowed_late_by": "1h6m38s"}, m.Meta)
	require.Equal(t, row(3, "a", 2), string(m.Payload))
	send(t, p, row(4, "a", 8000))
	send(t, p, row(5, "a", 12000))
	all := arrive(t, p, 3)
	require.Equal(t, "hour", all[1].Get("windowed_operator"))
	require.Contains(t, string(all[1].Payload), `"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T01:00:00Z","n":1}`)
}

// In the cases of a switch every operator has its own messages.
func TestOperatorsInASwitch(t *testing.T) {
	clean(t)
	side := func(name, field string) string {
		return fmt.Sprintf("{ check: 'this.side == %q', processors: [ { watermark: { name: w%s, event_time: this.%s } }, { tumbling_window: { name: %s, size: 10s, aggregates: { n: count() } } } ] }", name, name, field, name)
	}
	p := pipe(t, pipelineOf("", 1, "{ switch: [ "+side("left", "a")+", "+side("right", "b")+" ] }"))
	send(t, p, `{"side":"left","a":1}`, `{"side":"right","b":1}`, `{"side":"right","b":2}`, `{"side":"other"}`)
	send(t, p, `{"side":"left","a":11}`)
	send(t, p, `{"side":"right","b":30}`)
	all := arrive(t, p, 3)
	require.Equal(t, `{"side":"other"}`, string(all[0].Payload))
	require.Equal(t, "left", all[1].Get("windowed_operator"))
	require.Contains(t, string(all[1].Payload), `"n":1`)
	require.Equal(t, "right", all[2].Get("windowed_operator"))
	require.Contains(t, string(all[2].Payload), `"n":2`)
}

// More rows than a batch holds leave an operator in several; the next one has seen
// all of them before it closes anything.
func TestOperatorSplitsLargeAnswers(t *testing.T) {
	for _, file := range []string{"", stateFile(t)} {
		t.Run(fmt.Sprint(file != ""), func(t *testing.T) {
			clean(t)
			var sizes []int
			probe := processorOf(t, &processor{process: sizesInto(&sizes)})
			p := pipe(t, pipelineOf(file, 1, on(file, stamp+", "+tens)+", "+probe+", "+on(file, "{ tumbling_window: { name: outer, size: 10s, aggregates: { groups: count(), rows: sum(this.n) }, late: pass } }")))
			var rows []string
			for i := range 2500 {
				rows = append(rows, row(i, fmt.Sprint(i), 1))
			}
			send(t, p, rows...)
			send(t, p, row(2500, "z", 11))
			require.Equal(t, []int{1000, 1000, 500}, sizes)
			require.Contains(t, string(arrive(t, p, 1)[0].Payload), `"groups":2500,"rows":2500}`)
		})
	}
}

// sizesInto notes the sizes of batches.
func sizesInto(sizes *[]int) func(context.Context, service.MessageBatch) ([]service.MessageBatch, error) {
	return func(_ context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
		*sizes = append(*sizes, len(batch))
		return []service.MessageBatch{batch}, nil
	}
}

// Several threads bring the pairs of a watermark out of order: no row is judged
// late that was in time for its watermark, and none is lost.
func TestOperatorsOnSeveralThreads(t *testing.T) {
	clean(t)
	p := pipe(t, pipelineOf("", 4, `{ watermark: { event_time: this.ts, delay: 1000s } }`, "{ sleep: { duration: '${! random_int(min: 1, max: 3) }ms' } }", `{ tumbling_window: { size: 10s, aggregates: { n: count() }, late: pass } }`))
	var all []*drive.Delivery
	for i := range 100 {
		all = append(all, offer(p, row(i, "a", float64(i))))
	}
	for _, d := range all {
		acked(t, p, d)
	}
	require.Empty(t, p.Sink.Messages())
	send(t, p, row(100, "a", 5000))
	sum := 0
	for _, m := range arrive(t, p, 10) {
		var n int
		_, err := fmt.Sscanf(string(m.Payload[strings.Index(string(m.Payload), `"n":`):]), `"n":%d}`, &n)
		require.NoError(t, err)
		sum += n
	}
	require.Equal(t, 100, sum)
}
