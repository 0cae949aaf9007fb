package drive

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// straight is a pipeline without anything in between.
func straight(feed, sink map[string]any) map[string]any {
	return map[string]any{"input": feed, "output": sink}
}

func messages(payloads ...string) func() service.MessageBatch {
	return func() service.MessageBatch {
		batch := service.MessageBatch{}
		for _, p := range payloads {
			batch = append(batch, service.NewMessage([]byte(p)))
		}
		return batch
	}
}

func payloads(sink *Sink) (all []string) {
	for _, m := range sink.Messages() {
		all = append(all, string(m.Payload))
	}
	return all
}

func TestFeedSendsAgainWhatWasRefused(t *testing.T) {
	p, err := Start(straight)
	require.NoError(t, err)
	attempt := 0
	p.Sink.Refuse(func(batch []Message) []int {
		attempt++
		switch attempt {
		case 1:
			return []int{0, 1, 2} // all
		case 2:
			return []int{1}
		}
		return nil
	})
	d := p.Feed.Send(messages("a", "b", "c"), nil)
	select {
	case <-d.Acked():
	case <-time.After(waitLimit):
		t.Fatal("not acknowledged")
	}
	require.Equal(t, 2, d.Nacks())
	require.Equal(t, []string{"a", "c", "b"}, payloads(p.Sink))
	require.Equal(t, 4, p.Sink.Refused())
	p.Feed.End()
	require.NoError(t, p.WaitEnd(waitLimit))
	require.Positive(t, p.Feed.Closes())
}

func TestErrorsAndMetadataReachTheSink(t *testing.T) {
	p, err := Start(straight)
	require.NoError(t, err)
	d := p.Feed.Send(func() service.MessageBatch {
		msg := service.NewMessage([]byte("x"))
		msg.MetaSetMut("n", 3)
		msg.SetError(errors.New("before"))
		return service.MessageBatch{msg}
	}, nil)
	<-d.Acked()
	got := p.Sink.Messages()[0]
	require.EqualError(t, got.Err, "before")
	require.Equal(t, "3", got.Get("n"))
	sent, found := p.Meter.Sum("output_sent")
	require.True(t, found)
	require.EqualValues(t, 1, sent)
	require.NoError(t, p.Stop())
}

func TestStartReportsABadConfiguration(t *testing.T) {
	_, err := Start(func(feed, sink map[string]any) map[string]any {
		return map[string]any{"input": feed, "output": sink, "pipeline": pipeline(map[string]any{"mapping": "root = nowhere("})}
	})
	require.Error(t, err)
}

func TestEncodings(t *testing.T) {
	row := json.RawMessage(`{"a": 9007199254740993, "b": [1.5, "x"], "c": null}`)
	for _, e := range []Encoding{Lines, Structured} {
		b, err := e.Message(row).AsBytes()
		require.NoError(t, err)
		require.True(t, SameJSON(row, b), "%s: %s", e.Name, b)
	}
	value, err := Structured.Message(row).AsStructured()
	require.NoError(t, err)
	require.EqualValues(t, int64(9007199254740993), value.(map[string]any)["a"])
	b, err := Structured.Message(json.RawMessage(`{"_raw": "not json"}`)).AsBytes()
	require.NoError(t, err)
	require.Equal(t, "not json", string(b))
	require.False(t, SameJSON([]byte(`{"a":9007199254740993}`), []byte(`{"a":9007199254740992}`)))
	require.False(t, SameJSON([]byte(`{"a":1}`), []byte(`{"a":1} x`)))
}

func TestFormsGiveEveryOperatorItsState(t *testing.T) {
	setup := Setup{StateFile: "x.db", Late: "pass", Processors: []json.RawMessage{
		json.RawMessage(`{"mapping": "root = this"}`),
		json.RawMessage(`{"watermark": {"event_time": "this.ts"}}`),
		json.RawMessage(`{"tumbling_window": {"size": "10s", "group_by": {"b": "this.b", "a": "this.a"}}}`),
	}}
	data, err := json.Marshal(Standalone.Build(setup)(map[string]any{}, map[string]any{}))
	require.NoError(t, err)
	require.JSONEq(t, `{"input": {}, "output": {}, "cache_resources": [{"label": "state", "bbolt": {"path": "x.db"}}],
		"pipeline": {"threads": 1, "processors": [{"mapping": "root = this"},
			{"watermark": {"event_time": "this.ts", "state": "state", "position": "none"}},
			{"tumbling_window": {"size": "10s", "group_by": {"b": "this.b", "a": "this.a"}, "late": "pass", "state": "state", "position": "none"}}]}}`, string(data))
	w, ok := WindowOf(setup.Processors)
	require.True(t, ok)
	require.Equal(t, Window{Name: "tumbling_window", GroupBy: []string{"a", "b"}}, w)
}
