package processors_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// clean wants every goroutine that the test started gone at its end.
func clean(t testing.TB) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// counting counts by k in windows of ten seconds.
const counting = `{ watermark: { event_time: this.ts } }, { tumbling_window: { size: 10s, group_by: { k: this.k }, aggregates: { n: count() }, late: pass } }`

const byOffset = `position: { partition: '"p"', offset: this.o }`

// hostInput is a pipeline with the input host, whose state lies in a file unless
// it is "".
func hostInput(file, list string, fields ...string) string {
	return "input:\n  windowed: { input: FEED, " + hostFields(file, list, fields...) + " }\noutput: SINK\n" + cacheOf(file)
}

func hostFields(file, list string, fields ...string) string {
	state := "memory"
	if file != "" {
		state = "store"
	}
	return strings.Join(append(fields, "state: "+state, "processors: [ "+list+" ]"), ", ")
}

func cacheOf(file string) string {
	if file == "" {
		return ""
	}
	return "cache_resources: [ { label: store, bbolt: { path: " + file + " } } ]\n"
}

func stateFile(t testing.TB) string { return filepath.Join(t.TempDir(), "state.db") }

// offer queues a batch of payloads.
func offer(p *drive.Pipe, payloads ...string) *drive.Delivery {
	return p.Feed.Send(func() service.MessageBatch { return texts(payloads...) }, nil)
}

// send offers a batch and waits for its acknowledgement.
func send(t testing.TB, p *drive.Pipe, payloads ...string) {
	t.Helper()
	acked(t, p, offer(p, payloads...))
}

func acked(t testing.TB, p *drive.Pipe, d *drive.Delivery) {
	t.Helper()
	select {
	case <-d.Acked():
	case <-time.After(patience):
		explain(t, p)
		require.Fail(t, "no acknowledgement")
	}
}

// explain says, should the test fail, what the pipeline was doing.
func explain(t testing.TB, p *drive.Pipe) {
	t.Cleanup(func() {
		if t.Failed() {
			buf := make([]byte, 1<<20)
			t.Logf("%v\n%s\n%s", p.Meter.All(), p.Logs, buf[:runtime.Stack(buf, true)])
		}
	})
}

// row is a message that counting takes.
func row(offset int, k string, ts float64) string {
	return fmt.Sprintf(`{"o":%d,"k":%q,"ts":%g}`, offset, k, ts)
}

// arrive waits until n messages have reached the output and gives all of them.
func arrive(t testing.TB, p *drive.Pipe, n int) []drive.Message {
	t.Helper()
	require.True(t, p.Sink.Wait(p.Ended(), patience, func(all []drive.Message) bool { return len(all) >= n }), "%d of %d messages\n%s", len(p.Sink.Messages()), n, p.Logs)
	all := p.Sink.Messages()
	require.Len(t, all, n)
	return all
}

// counts gives k=n of final rows.
func counts(t testing.TB, messages []drive.Message) (list []string) {
	t.Helper()
	for _, m := range messages {
		list = append(list, fmt.Sprintf("%s %s", m.Get("windowed_start")[11:19], m.Payload[strings.Index(string(m.Payload), `"k"`):]))
	}
	return list
}

// metric waits for the value of a metric.
func metric(t testing.TB, p *drive.Pipe, name string, want int64, where ...string) {
	t.Helper()
	explain(t, p)
	var got int64
	require.Eventually(t, func() bool {
		var found bool
		got, found = p.Meter.Sum(name, where...)
		return found && got == want
	}, patience, 5*time.Millisecond, "%s is not %d", name, want)
}

// metricAbove waits until a metric has reached a value.
func metricAbove(t testing.TB, p *drive.Pipe, name string, least int64) {
	t.Helper()
	explain(t, p)
	require.Eventually(t, func() bool {
		n, _ := p.Meter.Sum(name)
		return n >= least
	}, patience, 5*time.Millisecond, "%s is below %d", name, least)
}
