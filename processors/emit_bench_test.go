package processors

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// silent is a log and a meter that keep nothing.
type silent struct{}

func (silent) Infof(string, ...any)        {}
func (silent) Warnf(string, ...any)        {}
func (silent) Errorf(string, ...any)       {}
func (silent) Count(string, int64, string) {}
func (silent) Gauge(string, int64, string) {}
func (silent) Took(string, time.Duration)  {}

// benchHost is a window of a second behind the outbox of an input.
func benchHost(b *testing.B) *windowedInput {
	grid, err := windowing.NewTumbling(time.Second, 0)
	require.NoError(b, err)
	count, err := agg.Parse("count()")
	require.NoError(b, err)
	sum, err := agg.Parse("sum(this.amount)")
	require.NoError(b, err)
	groups := []windowing.GroupField{{Name: "page", Expr: "this.page"}}
	fields := []windowing.Aggregate{{Name: "orders", Call: count}, {Name: "total", Call: sum}}
	w := windowing.NewWindow(windowing.WindowConfig{Name: "tumbling_window", Assigner: grid, GroupBy: groups, Aggregates: fields})
	binding := newWindowBinding(nil, groups, fields)
	binding.leaves = true
	chain, err := windowing.NewChain(windowing.Config{Lead: 2, Stages: []windowing.Stage{
		{Name: "watermark", Kind: "watermark", Binding: watermarkBinding{},
			Watermark: &windowing.Watermark{Config: watermark.Config{Sources: []watermark.SourceConfig{{}}}}},
		{Name: "tumbling_window", Kind: "tumbling_window", Operator: w, Definition: w.Definition(), Binding: binding},
	}})
	require.NoError(b, err)
	h, err := host.Open(host.Config{Name: "bench", Chain: chain, Store: kv.NewMemory(), Edge: edge{texts: &markTexts{}}, Positions: host.None, Log: silent{}, Meter: silent{}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, h.Close(context.Background())) })
	return &windowedInput{hosted: &hosted{Host: h}, stop: func() {}}
}

// BenchmarkClosingWindow is the whole way of the rows of a window with many groups:
// one row comes in for each, the window closes, its rows are written to the outbox,
// read, delivered and removed. Without evaluation and disk.
func BenchmarkClosingWindow(b *testing.B) {
	const groups = 20_000
	ctx := context.Background()
	var keys [groups][]byte
	for i := range keys {
		keys[i] = agg.String(fmt.Sprint("/item/", i)).AppendKey(nil)
	}
	in := benchHost(b)
	args := []agg.Value{agg.Float(1.25)}
	offer := func(second, n int) {
		rows := make([]windowing.Row, n)
		for i := range rows {
			rows[i] = windowing.Row{Time: watermark.Time(second) * watermark.Time(time.Second), Entry: int32(i), Key: keys[i], Args: args}
		}
		require.NoError(b, in.Offer(ctx, &host.Batch{Rows: rows, Entries: make([]host.Entry, n)}))
	}
	b.ReportAllocs()
	second, out := 0, 0
	for b.Loop() {
		offer(second, groups)
		offer(second+1, 1)
		second += 2
		for closed := second/2*(groups+1) - 1; out < closed; {
			batch, ack, err := in.ReadBatch(ctx)
			require.NoError(b, err)
			out += len(batch)
			require.NoError(b, ack(ctx, nil))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(out), "ns/row")
}
