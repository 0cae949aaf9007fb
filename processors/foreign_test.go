package processors_test

import (
	"context"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// forms are the two hosts around a list of processors.
func forms(file, list string) map[string]string {
	return map[string]string{"input": hostInput(file, list, byOffset), "processor": hostPipeline(file, list, byOffset)}
}

// eachForm runs a test in both hosts.
func eachForm(t *testing.T, list string, test func(t *testing.T, p *drive.Pipe)) {
	t.Helper()
	for name := range forms("", "") {
		t.Run(name, func(t *testing.T) {
			clean(t)
			p := pipe(t, forms(stateFile(t), list)[name])
			test(t, p)
			require.NoError(t, p.Stop())
		})
	}
}

const (
	stamp = "{ watermark: { event_time: this.ts } }"
	tens  = "{ tumbling_window: { size: 10s, group_by: { k: this.k }, aggregates: { n: count() }, late: pass } }"
)

// What stands between the operators may change messages, drop them, split them and
// take their metadata: event time stays with what derives from them.
func TestForeignProcessorsChangeMessages(t *testing.T) {
	list := `{ mapping: 'root = if this.drop.or(false) { deleted() } else { this }' }, ` + stamp + `,
		{ mapping: "meta = deleted()\nroot = if this.list.type() == \"array\" { this.list } else { [ this.k.uppercase() ] }" }, { unarchive: { format: json_array } },
		{ mapping: 'root = {"k": this}' }, ` + tens + `, { mutation: 'root.more = @windowed_timing.or("not yet")' }`
	eachForm(t, list, func(t *testing.T, p *drive.Pipe) {
		send(t, p, row(1, "a", 1), `{"o":2,"ts":100,"drop":true}`, `{"o":3,"ts":2,"k":"x","list":["A","B","B"]}`)
		send(t, p, row(4, "z", 11))
		all := arrive(t, p, 2)
		require.Equal(t, []string{`00:00:00 "k":"A","more":"not yet","n":2,"window_end":"1970-01-01T00:00:10Z","window_start":"1970-01-01T00:00:00Z"}`,
			`00:00:00 "k":"B","more":"not yet","n":2,"window_end":"1970-01-01T00:00:10Z","window_start":"1970-01-01T00:00:00Z"}`}, counts(t, all))
	})
}

// A message that fails between the operators goes on with its error and counts
// nowhere, also when a later processor mends it.
func TestForeignProcessorsFail(t *testing.T) {
	for _, mend := range []string{"", `, { catch: [ { mutation: 'root.mended = true' } ] }`} {
		list := stamp + `, { mapping: 'root = if this.k == "bad" { throw("no good") } else { this }' }` + mend + `, ` + tens
		eachForm(t, list, func(t *testing.T, p *drive.Pipe) {
			send(t, p, row(1, "a", 1), row(2, "bad", 2))
			send(t, p, row(3, "z", 11))
			all := arrive(t, p, 2)
			if mend == "" {
				require.ErrorContains(t, all[0].Err, "no good")
			} else {
				require.NoError(t, all[0].Err)
				require.Contains(t, string(all[0].Payload), "mended")
			}
			require.Equal(t, []string{`00:00:00 "k":"a","n":1}`}, counts(t, all[1:]))
		})
	}
}

// A processor that makes messages of nothing has to stand before the watermark.
func TestForeignProcessorsMakeMessages(t *testing.T) {
	fresh := func(t *testing.T) string {
		return processorOf(t, &processor{process: func(_ context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
			var out service.MessageBatch
			for _, p := range payloads(batch) {
				out = append(out, service.NewMessage([]byte(p)))
			}
			return []service.MessageBatch{out}, nil
		}})
	}
	eachForm(t, fresh(t)+", "+counting, func(t *testing.T, p *drive.Pipe) {
		send(t, p, row(1, "a", 1))
		send(t, p, row(2, "z", 11))
		require.Equal(t, []string{`00:00:00 "k":"a","n":1}`}, counts(t, arrive(t, p, 1)))
	})
	eachForm(t, stamp+", "+fresh(t)+", "+tens, func(t *testing.T, p *drive.Pipe) {
		send(t, p, row(1, "a", 1))
		require.ErrorContains(t, arrive(t, p, 1)[0].Err, "lost its event time")
	})
}

// Several batches of a foreign processor are one step for what follows.
func TestForeignBatchesBecomeOne(t *testing.T) {
	var sizes []int
	probe := processorOf(t, &processor{process: sizesInto(&sizes)})
	eachForm(t, stamp+", { split: { size: 1 } }, "+probe+", "+tens, func(t *testing.T, p *drive.Pipe) {
		sizes = nil
		send(t, p, row(1, "a", 1), row(2, "b", 2), row(3, "c", 3))
		require.Equal(t, []int{3}, sizes)
	})
}

// An operator behind two resources is found when messages come: they get an error.
func TestOperatorFoundAtRunTime(t *testing.T) {
	clean(t)
	p := pipe(t, hostInput("", stamp+", { resource: outer }", "position: none")+`
processor_resources:
  - { label: outer, try: [ { resource: inner } ] }
  - { label: inner, tumbling_window: { size: 10s, aggregates: { n: count() } } }
`)
	send(t, p, row(1, "a", 1))
	require.ErrorContains(t, arrive(t, p, 1)[0].Err, "inside of another host")
	require.ErrorContains(t, arrive(t, p, 1)[0].Err, "directly into the host's processors list")
}

// A stop does not wait for a foreign processor that hangs: the step is abandoned,
// nothing of it is saved, and it comes again.
func TestStopWhileAForeignProcessorHangs(t *testing.T) { inChild(t, stopWhileAForeignProcessorHangs) }

func stopWhileAForeignProcessorHangs(t *testing.T) {
	file := stateFile(t)
	called := make(chan struct{}, 10)
	hangs := true
	foreign := processorOf(t, &processor{process: func(ctx context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
		called <- struct{}{}
		if hangs {
			<-ctx.Done()
		}
		return []service.MessageBatch{batch}, ctx.Err()
	}})
	conf := hostInput(file, stamp+", "+foreign+", "+tens, byOffset)
	p := pipe(t, conf)
	d := offer(p, row(1, "a", 1))
	within(t, called, "the foreign processor")
	start := time.Now()
	require.NoError(t, p.Stop())
	require.Less(t, time.Since(start), 15*time.Second)
	select {
	case <-d.Acked():
		require.Fail(t, "a step that was abandoned is acknowledged")
	default:
	}
	hangs = false
	p = pipe(t, conf)
	send(t, p, row(1, "a", 1))
	send(t, p, row(2, "z", 11))
	require.Equal(t, []string{`00:00:00 "k":"a","n":1}`}, counts(t, arrive(t, p, 1)))
}
