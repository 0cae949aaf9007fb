package processors_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/processors"
	"github.com/connect-windowed/connect-windowed/tests/drive"
)

func TestNaturalEnd(t *testing.T) {
	for _, onEnd := range []string{"keep", "flush"} {
		t.Run(onEnd, func(t *testing.T) {
			clean(t)
			file := stateFile(t)
			conf := hostInput(file, counting, byOffset, "on_end: "+onEnd)
			p := pipe(t, conf)
			send(t, p, row(1, "a", 1), row(2, "b", 12))
			send(t, p, row(3, "a", 13))
			p.Feed.End()
			require.NoError(t, p.WaitEnd(patience))
			want := []string{`00:00:00 "k":"a","n":1}`}
			if onEnd == "flush" {
				want = append(want, `00:00:10 "k":"a","n":1}`, `00:00:10 "k":"b","n":1}`)
			}
			require.Equal(t, want, counts(t, p.Sink.Messages()))
			require.Equal(t, 1, p.Feed.Closes())

			p = pipe(t, conf) // goes on with the open window
			send(t, p, row(4, "c", 14), row(5, "z", 25))
			p.Feed.End()
			require.NoError(t, p.WaitEnd(patience))
			want = []string{`00:00:10 "k":"a","n":1}`, `00:00:10 "k":"b","n":1}`, `00:00:10 "k":"c","n":1}`}
			if onEnd == "flush" { // a and b came out before and are the same
				want = []string{want[2], `00:00:20 "k":"z","n":1}`}
			}
			require.Equal(t, want, counts(t, p.Sink.Messages()))
		})
	}
}

func TestEndOfNothing(t *testing.T) {
	for _, onEnd := range []string{"keep", "flush"} {
		t.Run(fmt.Sprint(onEnd), func(t *testing.T) {
			clean(t)
			p := pipe(t, hostInput(stateFile(t), counting, byOffset, "on_end: "+onEnd))
			p.Feed.End()
			require.NoError(t, p.WaitEnd(patience))
			require.Empty(t, p.Sink.Messages())
		})
	}
}

// What is acknowledged is in the file: a copy of it, taken at that moment, knows
// the message.
func TestAcknowledgedAfterTheCommit(t *testing.T) {
	clean(t)
	file, copied := stateFile(t), stateFile(t)
	p := pipe(t, hostInput(file, counting, byOffset))
	var err error
	d := p.Feed.Send(func() service.MessageBatch { return texts(row(1, "a", 1), row(2, "b", 2)) }, func() { err = drive.Snapshot(file, copied) })
	acked(t, p, d)
	require.NoError(t, err)
	q := pipe(t, hostInput(copied, counting, byOffset))
	send(t, q, row(1, "a", 1), row(2, "b", 2), row(3, "z", 11))
	require.Equal(t, []string{`00:00:00 "k":"a","n":1}`, `00:00:00 "k":"b","n":1}`}, counts(t, arrive(t, q, 2)))
	metric(t, q, "windowed_redelivered_rows", 2)
}

// Rows that an error names are offered again, the others are not.
func TestRefusedRowsComeAgain(t *testing.T) {
	clean(t)
	p := pipe(t, hostInput(stateFile(t), counting, byOffset))
	refusals := map[string]int{}
	p.Sink.Refuse(func(batch []drive.Message) (no []int) {
		for i, m := range batch {
			if k := string(m.Payload); strings.Contains(k, `"odd`) && refusals[k] < 3 {
				refusals[k]++
				no = append(no, i)
			}
		}
		return no
	})
	var rows []string
	for i := range 40 {
		rows = append(rows, row(i, []string{"even", "odd"}[i%2]+fmt.Sprint(i), 1))
	}
	send(t, p, append(rows, row(40, "z", 11))...)
	keys := map[string]bool{}
	for _, m := range arrive(t, p, 40) {
		require.False(t, keys[m.Get("windowed_row_key")], "twice: %s", m.Payload)
		keys[m.Get("windowed_row_key")] = true
	}
	require.Equal(t, 60, p.Sink.Refused())
	metric(t, p, "windowed_nacked_rows", 60)
}

// A stop while rows are with the output keeps them; the next start offers them
// again, in the same words.
func TestStopWithRowsInFlight(t *testing.T) {
	clean(t)
	file := stateFile(t)
	conf := hostInput(file, counting, byOffset)
	p := pipe(t, conf)
	var first []drive.Message
	p.Sink.Refuse(func(batch []drive.Message) (no []int) {
		if first == nil {
			first = batch
		}
		for i := range batch {
			no = append(no, i)
		}
		return no
	})
	send(t, p, row(1, "a", 1), row(2, "b", 1), row(3, "z", 11))
	metric(t, p, "windowed_rows_emitted", 2)
	require.Eventually(t, func() bool { return p.Sink.Refused() >= 4 }, patience, time.Millisecond)
	require.NoError(t, p.Stop())
	require.Empty(t, p.Sink.Messages())

	p = pipe(t, conf)
	require.Equal(t, first, arrive(t, p, 2))
	metric(t, p, "windowed_outbox_rows", 0)
	require.NoError(t, p.Stop())
	p = pipe(t, conf)
	send(t, p, row(4, "z", 21))
	require.Equal(t, []string{`00:00:10 "k":"z","n":1}`}, counts(t, arrive(t, p, 1)))
}

// A child that never ends and an idle one do not hold up a stop.
func TestStopOfASilentChild(t *testing.T) {
	clean(t)
	p := pipe(t, hostInput(stateFile(t), counting, byOffset))
	start := time.Now()
	require.NoError(t, p.Stop())
	p = pipe(t, "input: { windowed: { input: { generate: { interval: 1ms, mapping: 'root = {\"ts\": now().ts_unix_nano() / 1000000000, \"k\": 1}' } }, "+hostFields(stateFile(t), counting, "position: none")+" } }\noutput: SINK\n"+cacheOf(stateFile(t)))
	metricAbove(t, p, "windowed_rows_in", 20)
	require.NoError(t, p.Stop())
	require.Less(t, time.Since(start), 30*time.Second)
}

// The retry list of an input, on or off, makes no difference: the host never
// refuses.
func TestChildWithAndWithoutReplay(t *testing.T) {
	for _, replay := range []bool{true, false} {
		t.Run(fmt.Sprint(replay), func(t *testing.T) {
			clean(t)
			data := filepath.Join(t.TempDir(), "rows.ndjson")
			require.NoError(t, os.WriteFile(data, []byte(row(1, "a", 1)+"\n"+row(2, "a", 2)+"\n"+row(3, "z", 11)+"\n"), 0o600))
			p := pipe(t, fmt.Sprintf("input: { windowed: { input: { file: { paths: [ %s ], scanner: { lines: {} }, auto_replay_nacks: %v } }, %s } }\noutput: SINK\n%s",
				data, replay, hostFields(stateFile(t), counting, "position: ordinal"), cacheOf(stateFile(t))))
			refused := 0
			p.Sink.Refuse(func(batch []drive.Message) []int {
				if refused++; refused < 4 {
					return []int{0}
				}
				return nil
			})
			require.NoError(t, p.WaitEnd(patience))
			require.Equal(t, []string{`00:00:00 "k":"a","n":2}`}, counts(t, p.Sink.Messages()))
		})
	}
}

var errBefore = errors.New("it was broken before")

// A message that arrives with an error passes unchanged and moves nothing.
func TestFlaggedMessagesPass(t *testing.T) {
	clean(t)
	p := pipe(t, hostInput(stateFile(t), counting, byOffset))
	d := p.Feed.Send(func() service.MessageBatch {
		bad := service.NewMessage([]byte(row(2, "a", 100)))
		bad.MetaSetMut("mine", int64(7))
		bad.SetError(errBefore)
		return append(texts(row(1, "a", 1)), bad)
	}, nil)
	acked(t, p, d)
	m := arrive(t, p, 1)[0]
	require.Equal(t, row(2, "a", 100), string(m.Payload))
	require.EqualError(t, m.Err, errBefore.Error())
	require.Equal(t, map[string]any{"mine": int64(7)}, m.Meta)
	send(t, p, row(3, "a", 2), row(4, "z", 11))
	require.Equal(t, []string{`00:00:00 "k":"a","n":2}`}, counts(t, arrive(t, p, 2)[1:]))
	metric(t, p, "windowed_invalid_rows", 1)
}

// The metadata of rows is what the design lists and nothing else, with its types,
// before and after it lay in the file.
func TestMetadataOfRows(t *testing.T) {
	clean(t)
	file := stateFile(t)
	conf := hostInput(file, counting, byOffset)
	forged := map[string]any{"mine": "x", "kafka_key": []byte("k"), "windowed_row_key": "forged", "windowed_row_id": "forged",
		"windowed_revision": int64(99), "windowed_timing": "late", "windowed_late_by": "forged", "windowed_late_operator": "forged",
		"windowed_event_time": "2030-01-01T00:00:00Z", "windowed_watermark": "2030-01-01T00:00:00Z", "windowed_operator": "forged", "windowed_start": "s", "windowed_end": "e", "windowed_other": 1}
	message := func(payload string) *service.Message {
		m := service.NewMessage([]byte(payload))
		for key, value := range forged {
			m.MetaSetMut(key, value)
		}
		return m
	}
	final := map[string]any{
		"windowed_operator": "tumbling_window", "windowed_timing": "on_time", "windowed_revision": int64(1),
		"windowed_row_key":    `["tumbling_window",["a"],"1970-01-01T00:00:00Z","1970-01-01T00:00:10Z"]`,
		"windowed_row_id":     `["tumbling_window",["a"],"1970-01-01T00:00:00Z","1970-01-01T00:00:10Z",1]`,
		"windowed_event_time": "1970-01-01T00:00:09.999999999Z", "windowed_watermark": "1970-01-01T00:00:11.5Z",
		"windowed_start": "1970-01-01T00:00:00Z", "windowed_end": "1970-01-01T00:00:10Z"}
	late := map[string]any{"mine": "x", "kafka_key": []byte("k"), "windowed_other": 1, "windowed_late_operator": "tumbling_window", "windowed_late_by": "8.5s"}
	check := func(p *drive.Pipe) {
		all := arrive(t, p, 3)
		require.Equal(t, final, all[0].Meta)
		require.Equal(t, `{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:10Z","k":"a","n":1}`, string(all[0].Payload))
		require.NoError(t, all[0].Err)
		require.Equal(t, late, all[1].Meta)
		require.Equal(t, row(3, "late", 3), string(all[1].Payload))
		require.NoError(t, all[1].Err)
		require.Equal(t, forged, all[2].Meta, "an invalid row passes untouched")
		require.Error(t, all[2].Err)
	}
	refuse := func(batch []drive.Message) (no []int) {
		for i := range batch {
			no = append(no, i)
		}
		return no
	}
	p := pipe(t, conf)
	give := func(p *drive.Pipe) {
		acked(t, p, p.Feed.Send(func() service.MessageBatch {
			return service.MessageBatch{message(row(1, "a", 1)), message(row(2, "z", 11.5))}
		}, nil))
		acked(t, p, p.Feed.Send(func() service.MessageBatch { return service.MessageBatch{message(row(3, "late", 3))} }, nil))
		acked(t, p, p.Feed.Send(func() service.MessageBatch { return service.MessageBatch{message(`{"o":4,"ts":null}`)} }, nil))
	}
	give(p)
	check(p)
	require.NoError(t, p.Stop())

	p = pipe(t, hostInput(stateFile(t), counting, byOffset)) // refused once: the messages of memory are unchanged
	asked := 0
	p.Sink.Refuse(func(batch []drive.Message) []int {
		if asked++; asked <= 3 {
			return refuse(batch)
		}
		return nil
	})
	give(p)
	require.True(t, p.Sink.Wait(p.Ended(), patience, func(all []drive.Message) bool { return len(all) == 3 }))
	require.NoError(t, p.Stop())

	file = stateFile(t)
	p = pipe(t, hostInput(file, counting, byOffset))
	p.Sink.Refuse(refuse)
	give(p)
	require.NoError(t, p.Stop())
	check(pipe(t, hostInput(file, counting, byOffset)))
}

// Every metric of the host is there, and each kind of thing is said once.
func TestMetricsAndLogOfAHost(t *testing.T) {
	clean(t)
	p := pipe(t, hostInput(stateFile(t), counting))
	send(t, p, `{"k":"a","ts":1}`, `{"k":"b","ts":11}`, `{"k":"b","ts":null}`, `{"k":"b"}`)
	send(t, p, `{"k":"a","ts":1}`, `{"k":"a","ts":2}`)
	send(t, p, `{"k":"a","ts":1}`, `not JSON`)
	arrive(t, p, 7)
	metric(t, p, "windowed_rows_in", 8)
	metric(t, p, "windowed_late_rows", 3, "operator=tumbling_window")
	metric(t, p, "windowed_invalid_rows", 3, "operator=watermark")
	metric(t, p, "windowed_rows_emitted", 1, "operator=tumbling_window")
	metric(t, p, "windowed_watermark_ms", 11_000, "operator=watermark")
	metric(t, p, "windowed_open_windows", 1, "operator=tumbling_window")
	metric(t, p, "windowed_groups", 1, "operator=tumbling_window")
	metric(t, p, "windowed_outbox_rows", 0)
	for _, name := range []string{"windowed_watermark_lag_ms", "windowed_state_bytes", "windowed_commits", "windowed_commit_ns"} {
		metricAbove(t, p, name, 1)
	}
	require.NoError(t, p.Stop())
	for what, times := range map[string]int{
		"the first late row of tumbling_window": 1,
		"the first invalid row of watermark":    1,
		"messages have no position":             1,
	} {
		require.Equal(t, times, strings.Count(p.Logs.String(), what), "%s\n%s", what, p.Logs)
	}
}

// A position that holds something else stops the reading; the fault is said once,
// counted, and nothing is acknowledged any more.
func TestFaultOfAHost(t *testing.T) { inChild(t, faultOfAHost) }

func faultOfAHost(t *testing.T) {
	faults := make(chan error, 10)
	processors.OnFault(func(err error) { faults <- err })
	defer processors.OnFault(nil)
	p := pipe(t, hostInput(stateFile(t), counting, byOffset))
	send(t, p, row(1, "a", 1), row(2, "b", 2))
	wrong := offer(p, row(2, "other", 2))
	err := within(t, faults, "the fault")
	require.ErrorContains(t, err, `partition "p" offset 2`)
	require.ErrorContains(t, err, "another payload")
	after := offer(p, row(3, "c", 30))
	metric(t, p, "windowed_faults", 1)
	require.NoError(t, p.Stop())
	for _, d := range []*drive.Delivery{wrong, after} {
		select {
		case <-d.Acked():
			require.Fail(t, "acknowledged after a fault")
		default:
		}
		require.Zero(t, d.Nacks())
	}
	require.Empty(t, p.Sink.Messages())
	require.Empty(t, faults)
	require.Equal(t, 1, strings.Count(p.Logs.String(), "another payload"), "%s", p.Logs)
}
