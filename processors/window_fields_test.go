package processors

import (
	"context"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

// windowOf parses a window as its constructor does.
func windowOf(t *testing.T, spec *service.ConfigSpec, parse func(*service.ParsedConfig) (*operator, error), yaml string) (*operator, error) {
	t.Helper()
	conf, err := spec.ParseYAML(yaml+"\naggregates: { n: count() }", nil)
	if err != nil {
		return nil, err
	}
	return parse(conf)
}

// TestWindowMistakes: an error names the field, the value and what is allowed.
func TestWindowMistakes(t *testing.T) {
	tumbling := func(yaml string) (*operator, error) { return windowOf(t, tumblingSpec(), parseTumbling, yaml) }
	sliding := func(yaml string) (*operator, error) { return windowOf(t, slidingSpec(), parseSliding, yaml) }
	cumulative := func(yaml string) (*operator, error) { return windowOf(t, cumulativeSpec(), parseCumulative, yaml) }
	for _, c := range []struct {
		parse func(string) (*operator, error)
		yaml  string
		says  []string
	}{
		{tumbling, "size: 0s", []string{"size 0s", "above 0"}},
		{tumbling, "size: -5m", []string{"size", "-5m", "negative"}},
		{tumbling, "size: 5x", []string{"size", "5x", "5m"}},
		{tumbling, "size: 0d", []string{"size", "0d", "1d"}},
		{tumbling, "size: 1d12h", []string{"size", "1d12h"}},
		{tumbling, "size: 1d\noffset: 24h", []string{"offset 24h0m0s", "shorter"}},
		{tumbling, "size: 1d\ntimezone: Mars/Olympus", []string{"timezone", "Mars/Olympus", "Europe/Paris"}},
		{tumbling, "size: 1d\ntimezone: Local", []string{"timezone", "Local"}},
		{tumbling, "size: 1d\ntimezone: ''", []string{"timezone"}},
		{tumbling, "size: 5m\noutput_mode: complete\nallowed_lateness: 1m", []string{"allowed_lateness", "complete", "remove"}},
		{tumbling, "size: 5m\nallowed_lateness: -1m", []string{"allowed_lateness", "-1m"}},
		{tumbling, "size: 5m\noutput_mode: update\nearly: 1s", []string{"early", "update", "append"}},
		{tumbling, "size: 5m\noutput_mode: complete\nearly: 1s", []string{"early", "complete", "append"}},
		{tumbling, "size: 5m\nearly: -1s", []string{"early: -1s", "negative"}},
		{tumbling, "size: 5m\nhaving: 'this.n >'", []string{"having", "this.n >"}},
		{tumbling, "size: 5m\nfill: zero", []string{"fill", "fill_for"}},
		{tumbling, "size: 5m\nfill_for: 1h", []string{"fill_for", "null or zero"}},
		{tumbling, "size: 5m\nfill: null\nfill_for: 1h\noutput_mode: complete", []string{"fill", "append or update"}},
		{tumbling, "size: 5m\nfill: nil\nfill_for: 1h", []string{"fill", "nil", "zero"}},
		{sliding, "size: 5m\nslide: 10m", []string{"slide 10m0s", "size 5m0s"}},
		{sliding, "size: 5m\nslide: 0s", []string{"slide 0s", "above 0"}},
		{sliding, "size: 5m\nslide: -1s", []string{"slide", "-1s"}},
		{sliding, "size: 1h\nslide: 1ms", []string{"slide 1ms", "larger slide"}},
		{sliding, "size: 7d\nslide: 1h", []string{"size and slide", "24h"}},
		{sliding, "size: 1q\nslide: 1w", []string{"size 1q", "slide 1w"}},
		{cumulative, "size: 1h\nstep: 7m", []string{"size 1h0m0s", "step 7m0s"}},
		{cumulative, "size: 1d\nstep: 7h", []string{"size 1d", "step 7h0m0s", "1h or 1d"}},
		{cumulative, "size: 24h\nstep: 1d", []string{"step 1d and size", "for both"}},
		{cumulative, "size: 1mo\nstep: 1w", []string{"size 1mo", "step 1w", "or 1d"}},
		{cumulative, "size: 1d\nstep: 0d", []string{"step", "0d"}},
		{cumulative, "size: 1d\nstep: 1h\noffset: 24h", []string{"offset 24h0m0s", "shorter"}},
	} {
		_, err := c.parse(c.yaml)
		require.Error(t, err, c.yaml)
		for _, text := range c.says {
			require.ErrorContains(t, err, text, c.yaml)
		}
	}
}

func TestWindowRevises(t *testing.T) {
	for yaml, want := range map[string]bool{
		"size: 5m":                           false,
		"size: 5m\nallowed_lateness: 1m":     true,
		"size: 5m\noutput_mode: update":      true,
		"size: 1w\noutput_mode: complete":    true,
		"size: 5m\nfill: zero\nfill_for: 1h": false,
		"size: 5m\nearly: 10s":               true,
		"size: 5m\nearly: 0s":                false,
	} {
		op, err := windowOf(t, tumblingSpec(), parseTumbling, yaml)
		require.NoError(t, err)
		require.Equal(t, want, op.stage.Revises, yaml)
	}
}

// TestWindowOverYAML runs windows of every kind on their own, behind a watermark.
func TestWindowOverYAML(t *testing.T) {
	run := func(yaml string, rows ...string) (out []string) {
		b := service.NewStreamBuilder()
		b.DisableLinting()
		require.NoError(t, b.SetLoggerYAML("level: none"))
		b.SetThreads(1) // batches keep their order
		require.NoError(t, b.AddProcessorYAML("watermark: { event_time: this.ts, delay: 0s }"))
		require.NoError(t, b.AddProcessorYAML(yaml))
		send, err := b.AddProducerFunc()
		require.NoError(t, err)
		require.NoError(t, b.AddConsumerFunc(func(_ context.Context, m *service.Message) error {
			data, err := m.AsBytes()
			text := string(data)
			if m.GetError() != nil {
				text += " error: " + m.GetError().Error()
			}
			out = append(out, text)
			return err
		}))
		stream, err := b.Build()
		require.NoError(t, err)
		done := make(chan error)
		go func() { done <- stream.Run(t.Context()) }()
		for _, row := range rows {
			require.NoError(t, send(t.Context(), service.NewMessage([]byte(row))))
		}
		require.NoError(t, stream.Stop(t.Context()))
		<-done
		return out
	}
	require.Equal(t, []string{
		`{"window_start":"2024-03-30T04:00:00+01:00","window_end":"2024-03-31T04:00:00+02:00","n":1}`,
	}, run("tumbling_window: { size: 1d, offset: 4h, timezone: Europe/Paris, aggregates: { n: count() } }",
		`{"ts":"2024-03-31T01:59:59Z"}`, `{"ts":"2024-03-31T02:00:00Z"}`))
	require.Equal(t, []string{
		`{"window_start":"1969-12-31T23:59:50Z","window_end":"1970-01-01T00:00:10Z","n":1}`,
	}, run("sliding_window: { size: 20s, slide: 10s, aggregates: { n: count() }, having: this.n < 2 }",
		`{"ts":1}`, `{"ts":11}`, `{"ts":25}`))
	require.Equal(t, []string{
		`{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:10Z","n":1}`,
		`{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:20Z","n":2}`,
	}, run("cumulative_window: { size: 20s, step: 10s, aggregates: { n: count() } }", `{"ts":1}`, `{"ts":11}`, `{"ts":25}`))
	// A condition that fails is an error on the row, not a row that is gone.
	out := run("tumbling_window: { size: 10s, aggregates: { n: count(), most: max(this.v) }, having: this.most > 1 }", `{"ts":1}`, `{"ts":11}`)
	require.Len(t, out, 1)
	require.Contains(t, out[0], `"n":1`)
	require.Contains(t, out[0], "error: having")
	// An argument that cannot be evaluated where the filter leaves the row out.
	require.Equal(t, []string{
		`{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:10Z","n":2,"total":3}`,
	}, run("tumbling_window: { size: 10s, aggregates: { n: count(), total: 'sum(this.v.number(), where: this.ok)' } }",
		`{"ts":1,"v":"x","ok":false}`, `{"ts":2,"v":"3","ok":true}`, `{"ts":11,"ok":false}`))
}
