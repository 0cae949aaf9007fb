package tests

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// theirs is the dedupe processor of Connect over a cache: memory, or a file of ours.
func theirs(file string) drive.Form {
	cache := map[string]any{"label": "seen", "memory": map[string]any{}}
	if file != "" {
		cache = map[string]any{"label": "seen", "bbolt": map[string]any{"path": file}}
	}
	return drive.FormOf("dedupe of Connect", func(feed map[string]any) map[string]any {
		return map[string]any{
			"input": feed,
			"pipeline": map[string]any{"threads": 1, "processors": []any{
				map[string]any{"dedupe": map[string]any{"cache": "seen", "key": `${! json("id") }`}},
			}},
			"cache_resources": []any{cache},
		}
	})
}

// refusedOnce sends two messages and their duplicates through a pipeline whose
// output refuses its first batch, as a full disk or a restarting server does, and
// gives the ids that have arrived. The source sends again what was refused until
// all is acknowledged.
func refusedOnce(t *testing.T, form drive.Form, setup drive.Setup) (ids []string) {
	t.Helper()
	p, err := drive.Start(form.Build(setup))
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Stop() })
	refusing := true
	p.Sink.Refuse(func(batch []drive.Message) (no []int) {
		for i := range batch {
			if refusing {
				no = append(no, i)
			}
		}
		refusing = false
		return no
	})
	for _, rows := range [][]string{
		{`{"_p":"p0","_o":1,"id":"m1","ts":1}`, `{"_p":"p0","_o":2,"id":"m2","ts":2}`},
		{`{"_p":"p0","_o":3,"id":"m1","ts":3}`, `{"_p":"p0","_o":4,"id":"m2","ts":3}`, `{"_p":"p0","_o":5,"id":"m3","ts":4}`},
	} {
		d := p.Feed.Send(func() service.MessageBatch { return batchOf(rows...) }, nil)
		select {
		case <-d.Acked():
		case <-time.After(patience):
			require.Fail(t, "no acknowledgement", p.Logs.String())
		}
	}
	p.Feed.End()
	require.NoError(t, p.WaitEnd(patience))
	require.Positive(t, p.Sink.Refused())
	for _, m := range p.Sink.Messages() {
		var row struct{ ID string }
		require.NoError(t, json.Unmarshal(m.Payload, &row))
		ids = append(ids, row.ID)
	}
	return ids
}

// Connect's dedupe adds a key to its cache when it sees the message. When the
// delivery fails, the message comes again, is taken for a duplicate of itself,
// dropped and acknowledged: it is gone, whatever the cache is.
func TestDedupeOfConnectLosesWhatWasRefused(t *testing.T) {
	for name, file := range map[string]string{"memory": "", "file": t.TempDir() + "/seen.db"} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, []string{"m3"}, refusedOnce(t, theirs(file), drive.Setup{}))
		})
	}
}

// Ours delivers each of them once, in every form.
func TestWatermarkDedupeLosesNothing(t *testing.T) {
	processors := []json.RawMessage{
		json.RawMessage(`{"watermark": {"event_time": "this.ts", "delay": "60s"}}`),
		json.RawMessage(`{"watermark_dedupe": {"key": "this.id"}}`),
	}
	for _, form := range drive.Forms() {
		for name, file := range map[string]string{"memory": "", "file": t.TempDir() + "/state.db"} {
			t.Run(form.Name+"/"+name, func(t *testing.T) {
				got := refusedOnce(t, form, drive.Setup{Processors: processors, Position: byPosition, StateFile: file})
				require.ElementsMatch(t, []string{"m1", "m2", "m3"}, got)
			})
		}
	}
}
