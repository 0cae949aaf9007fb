package processors_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/processors"
	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// hostPipeline is a pipeline with the processor host.
func hostPipeline(file, list string, fields ...string) string {
	return pipelineOf(file, 1, "{ windowed: { "+hostFields(file, list, fields...)+" } }")
}

func pipelineOf(file string, threads int, list ...string) string {
	return fmt.Sprintf("input: FEED\npipeline: { threads: %d, processors: [ %s ] }\noutput: SINK\n%s", threads, strings.Join(list, ", "), cacheOf(file))
}

// once lets the output refuse the first batch that it gets.
func once(p *drive.Pipe) {
	asked := 0
	p.Sink.Refuse(func(batch []drive.Message) (no []int) {
		if asked++; asked > 1 {
			return nil
		}
		for i := range batch {
			no = append(no, i)
		}
		return no
	})
}

func TestProcessorGivesRowsBack(t *testing.T) {
	for _, file := range []string{"", stateFile(t)} {
		t.Run(fmt.Sprint(file != ""), func(t *testing.T) {
			clean(t)
			p := pipe(t, hostPipeline(file, counting, byOffset))
			send(t, p, row(1, "a", 1), row(2, "b", 2)) // nothing comes out, and it is acknowledged
			require.Empty(t, p.Sink.Messages())
			send(t, p, row(3, "z", 11.5))
			send(t, p, row(4, "a", 3), `{"o":5,"ts":null}`)
			all := arrive(t, p, 4)
			require.Equal(t, []string{`00:00:00 "k":"a","n":1}`, `00:00:00 "k":"b","n":1}`}, counts(t, all[:2]))
			require.Equal(t, map[string]any{
				"windowed_operator": "tumbling_window", "windowed_timing": "on_time", "windowed_revision": int64(1),
				"windowed_row_key":    `["tumbling_window",["a"],"1970-01-01T00:00:00Z","1970-01-01T00:00:10Z"]`,
				"windowed_row_id":     `["tumbling_window",["a"],"1970-01-01T00:00:00Z","1970-01-01T00:00:10Z",1]`,
				"windowed_event_time": "1970-01-01T00:00:09.999999999Z", "windowed_watermark": "1970-01-01T00:00:11.5Z",
				"windowed_start": "1970-01-01T00:00:00Z", "windowed_end": "1970-01-01T00:00:10Z"}, all[0].Meta)
			require.Equal(t, map[string]any{"windowed_late_operator": "tumbling_window", "windowed_late_by": "8.5s"}, all[2].Meta)
			require.Empty(t, all[3].Meta)
			require.Error(t, all[3].Err)
		})
	}
}

// A batch whose rows were not delivered comes again, in whatever company, and
// gets the same rows; nothing counts twice.
func TestProcessorAnswersARedelivery(t *testing.T) {
	for _, file := range []string{"", stateFile(t)} {
		t.Run(fmt.Sprint(file != ""), func(t *testing.T) {
			clean(t)
			p := pipe(t, hostPipeline(file, counting, byOffset))
			send(t, p, row(1, "a", 1), row(2, "b", 2), row(3, "a", 3))
			once(p)
			d := offer(p, row(4, "z", 11), `{"o":5,"ts":null}`)
			acked(t, p, d)
			require.Equal(t, 1, d.Nacks())
			all := arrive(t, p, 3)
			require.Error(t, all[0].Err)
			require.Equal(t, `{"o":5,"ts":null}`, string(all[0].Payload))
			require.Equal(t, []string{`00:00:00 "k":"a","n":2}`, `00:00:00 "k":"b","n":1}`}, counts(t, all[1:]))
			send(t, p, row(2, "b", 2), `{"o":5,"ts":null}`, row(6, "y", 12)) // another cut
			again := arrive(t, p, 6)[3:]
			require.Equal(t, all, again, "rows of a close derive from the last message")
			metric(t, p, "windowed_redelivered_rows", 4)
			require.NoError(t, p.Stop())
			if file == "" {
				return
			}
			p = pipe(t, hostPipeline(file, counting, byOffset))
			send(t, p, `{"o":5,"ts":null}`, row(4, "z", 11), row(7, "x", 21))
			again = arrive(t, p, 5)
			require.Equal(t, all, again[:3])
			require.Equal(t, []string{`00:00:10 "k":"y","n":1}`, `00:00:10 "k":"z","n":1}`}, counts(t, again[3:]))
		})
	}
}

// Threads bring batches out of order; that is said once, and every row counts or
// is late.
func TestProcessorOnSeveralThreads(t *testing.T) {
	clean(t)
	file := stateFile(t)
	p := pipe(t, pipelineOf(file, 4, "{ sleep: { duration: '${! random_int(min: 1, max: 3) }ms' } }", "{ windowed: { "+hostFields(file, `{ watermark: { event_time: this.ts } }, { tumbling_window: { size: 10s, aggregates: { n: count() }, late: pass } }`, byOffset)+" } }"))
	const rows = 200
	var all []*drive.Delivery
	for i := range rows {
		all = append(all, offer(p, row(i, "a", float64(i))))
	}
	for _, d := range all {
		acked(t, p, d)
	}
	send(t, p, row(rows, "a", 10_000))
	counted, late := 0, 0
	for _, m := range p.Sink.Messages() {
		if m.Get("windowed_late_operator") != "" {
			late++
			continue
		}
		var n int
		_, err := fmt.Sscanf(string(m.Payload[strings.Index(string(m.Payload), `"n":`):]), `"n":%d}`, &n)
		require.NoError(t, err)
		counted += n
	}
	require.Equal(t, rows, counted+late)
	require.NoError(t, p.Stop())
	require.Equal(t, 1, strings.Count(p.Logs.String(), "several threads"), "%s", p.Logs)
	require.Contains(t, p.Logs.String(), "pipeline.threads")
}

// Without positions a redelivery cannot be told from new messages. With state in
// a file that is an error on the message; in memory it is said once; and none
// accepts it.
func TestProcessorWithoutPositions(t *testing.T) {
	clean(t)
	p := pipe(t, hostPipeline(stateFile(t), counting))
	send(t, p, `{"k":"a","ts":1}`, `{"k":"z","ts":11}`)
	for _, m := range arrive(t, p, 2) {
		require.ErrorContains(t, m.Err, "no position")
		for _, remedy := range []string{"partition, offset", "windowed input", "position: none"} {
			require.ErrorContains(t, m.Err, remedy)
		}
	}
	d := p.Feed.Send(func() service.MessageBatch { // Kafka's own
		batch := texts(`{"k":"a","ts":1}`, `{"k":"z","ts":11}`)
		for i, m := range batch {
			m.MetaSetMut("kafka_topic", "t")
			m.MetaSetMut("kafka_partition", 0)
			m.MetaSetMut("kafka_offset", i)
		}
		return batch
	}, nil)
	acked(t, p, d)
	require.Len(t, p.Sink.Messages(), 2, "watermarks of partitions start after a grace")
	require.NoError(t, p.Stop())

	for _, conf := range []string{hostPipeline("", counting), hostPipeline(stateFile(t), counting, "position: none"), hostPipeline("", counting, "position: none")} {
		p = pipe(t, conf)
		once(p)
		send(t, p, `{"k":"a","ts":1}`)
		send(t, p, `{"k":"z","ts":11}`)
		require.Len(t, p.Sink.Messages(), 0, "the final row was refused, its message is new the second time, and the row is lost")
		send(t, p, `{"k":"z","ts":12}`)
		require.NoError(t, p.Stop())
		want := 0
		if !strings.Contains(conf, "none") {
			want = 1
		}
		require.Equal(t, want, strings.Count(p.Logs.String(), "have no position"), "%s", p.Logs)
	}
}

// Expressions that fail, and offsets that are null, are errors on their messages.
func TestPositionsThatCannotBeRead(t *testing.T) {
	clean(t)
	p := pipe(t, hostPipeline(stateFile(t), counting, `position: { partition: this.p, offset: this.o }`))
	send(t, p, `{"p":"x","o":1,"k":"a","ts":1}`, `{"p":null,"o":2,"k":"a","ts":1}`, `{"p":"x","o":1.5,"k":"a","ts":1}`, `{"p":"x","o":null,"k":"a","ts":1}`, `{"p":"x","o":"5","k":"a","ts":1}`, `{"p":"x","o":6,"k":"z","ts":11}`)
	all := arrive(t, p, 4)
	for i, part := range []string{"position.partition", "position.offset", "no position"} {
		require.ErrorContains(t, all[i].Err, part)
	}
	require.Equal(t, []string{`00:00:00 "k":"a","n":2}`}, counts(t, all[3:]))
}

// More rows than a batch holds leave in several, in their order, and a refusal of
// one of them brings the same rows again.
func TestProcessorSplitsLargeAnswers(t *testing.T) {
	clean(t)
	p := pipe(t, hostPipeline(stateFile(t), counting, byOffset))
	var rows []string
	for i := range 2500 {
		rows = append(rows, row(i, fmt.Sprintf("k%04d", i), 1))
	}
	send(t, p, rows...)
	var sizes []int
	p.Sink.Refuse(func(batch []drive.Message) (no []int) {
		sizes = append(sizes, len(batch))
		if len(sizes) == 2 {
			return []int{7}
		}
		return nil
	})
	d := offer(p, row(2500, "z", 11))
	acked(t, p, d)
	require.Equal(t, 1, d.Nacks())
	require.Equal(t, []int{1000, 1000, 500, 1000, 1000, 500}, sizes)
	seen := map[string]int{}
	for _, m := range p.Sink.Messages() {
		seen[m.Get("windowed_row_id")]++
	}
	require.Len(t, seen, 2500)
}

// The host may stand in the processors of an input, in a switch, and beside
// others on the same file.
func TestProcessorElsewhere(t *testing.T) {
	clean(t)
	file := stateFile(t)
	host := func(name string) string {
		return "{ windowed: { name: " + name + ", " + hostFields(file, counting, byOffset) + " } }"
	}
	p := pipe(t, fmt.Sprintf(`
input: { broker: { inputs: [ FEED ] }, processors: [ %s ] }
pipeline:
  threads: 1
  processors:
    - switch:
      - check: '@windowed_operator == null'
        processors: [ { mapping: root = this } ]
      - check: this.k == "a"
        processors: [ { mapping: 'root = this.assign({"ts": @windowed_end.ts_unix(), "o": @windowed_end.ts_unix()})' }, %s ]
output: SINK
%s`, host("first"), host("second"), cacheOf(file)))
	for i := range 5 {
		send(t, p, row(2*i, "a", float64(10*i)), row(2*i+1, "b", float64(10*i)))
	}
	var out []string
	for _, m := range p.Sink.Messages() {
		require.NoError(t, m.Err)
		out = append(out, m.Get("windowed_operator")+" "+m.Get("windowed_start")[11:19]+string(m.Payload[strings.Index(string(m.Payload), `"k"`):]))
	}
	require.Equal(t, []string{
		`tumbling_window 00:00:00"k":"b","n":1}`,
		`tumbling_window 00:00:10"k":"b","n":1}`,
		`tumbling_window 00:00:20"k":"b","n":1}`,
		`tumbling_window 00:00:30"k":"b","n":1}`,
	}, grep(out, `"b"`))
	require.NotEmpty(t, grep(out, `"a"`), "windows over windows")
}

func grep(list []string, what string) (found []string) {
	for _, s := range list {
		if strings.Contains(s, what) {
			found = append(found, s)
		}
	}
	return found
}

// A stop while rows are refused and sent again is quick, and the state is whole.
func TestProcessorStops(t *testing.T) {
	clean(t)
	file := stateFile(t)
	p := pipe(t, hostPipeline(file, counting, byOffset))
	p.Sink.Refuse(func(batch []drive.Message) (no []int) {
		for i := range batch {
			no = append(no, i)
		}
		return no
	})
	send(t, p, row(1, "a", 1))
	d := offer(p, row(2, "z", 11))
	require.Eventually(t, func() bool { return d.Nacks() > 3 }, patience, time.Millisecond)
	require.NoError(t, p.Stop())
	p = pipe(t, hostPipeline(file, counting, byOffset))
	send(t, p, row(2, "z", 11))
	require.Equal(t, []string{`00:00:00 "k":"a","n":1}`}, counts(t, arrive(t, p, 1)))
}

// A fault refuses batches by not answering: nothing goes on as if it had been
// processed, and nothing is acknowledged.
func TestFaultOfAProcessor(t *testing.T) {
	clean(t)
	faults := make(chan error, 10)
	processors.OnFault(func(err error) { faults <- err })
	defer processors.OnFault(nil)
	var acks, written atomic.Int64
	in := batches(func(_ int, _ *service.Indexer, err error) {
		if err == nil {
			acks.Add(1)
		}
	}, texts(row(1, "a", 1)), texts(row(1, "other", 2)), texts(row(2, "z", 11)))
	s := streamOf(t, fmt.Sprintf(`
input: %s
pipeline: { threads: 1, processors: [ { windowed: { %s } } ] }
output: %s
`, inputOf(t, in), hostFields("", counting, byOffset), outputOf(t, &output{write: func(context.Context, service.MessageBatch) error { written.Add(1); return nil }})))
	done := make(chan error, 1)
	go func() { done <- s.Run(background) }()
	require.ErrorContains(t, within(t, faults, "the fault"), "another payload")
	_ = s.StopWithin(50 * time.Millisecond) // it ends hard
	within(t, done, "the end of the stream")
	require.EqualValues(t, 1, acks.Load())
	require.Zero(t, written.Load())
	require.Empty(t, faults)
}

// Tests in a configuration run operators in memory, whatever their state. Benthos
// does not close the processors that it tests.
func TestEmbeddedTests(t *testing.T) { inChild(t, embeddedTests) }

func embeddedTests(t *testing.T) {
	processors.SetDryRun(true)
	defer processors.SetDryRun(false)
	file := filepath.Join(t.TempDir(), "no", "such", "state.db")
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf(`
input:
  windowed: { input: { generate: { mapping: root = 1 } }, %s }
pipeline:
  processors: [ { windowed: { name: second, %s } } ]
cache_resources: [ { label: store, bbolt: { path: %s } } ]
tests:
  - name: operators of the input host, on their own
    target_processors: /input/windowed/processors
    input_batches: [ [ { json_content: { k: a, ts: 1 } }, { json_content: { k: a, ts: 2 } } ], [ { json_content: { k: z, ts: 11 } } ] ]
    output_batches: [ [ { json_contains: { k: a, n: 2 }, metadata_equals: { windowed_timing: on_time, windowed_revision: 1 } } ] ]
  - name: the processor host
    target_processors: /pipeline/processors
    input_batch: [ { json_content: { k: a, ts: 1 } }, { json_content: { k: z, ts: 11 } } ]
    output_batches: [ [ { json_contains: { k: a, n: 1 } } ] ]
`, hostFields(file, counting), hostFields(file, counting), file)), 0o600))
	code, err := service.RunCLIToCode(background, service.CLIOptSetArgs("x", "test", path))
	require.NoError(t, err)
	require.Zero(t, code)
	code, err = service.RunCLIToCode(background, service.CLIOptSetArgs("x", "lint", path))
	require.NoError(t, err)
	require.Zero(t, code)
	_, err = os.Stat(filepath.Dir(file))
	require.ErrorIs(t, err, os.ErrNotExist)
}
