package tests

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
	"github.com/connect-windowed/connect-windowed/tests/machine"
)

// TestCasesFromAFile plays the cases whose batches are single rows as the lines of
// a file, read by the stock input, to its natural end.
func TestCasesFromAFile(t *testing.T) {
	files, err := machine.Files("testdata/cases")
	require.NoError(t, err)
	played := 0
	for _, name := range cases {
		runs, err := machine.LoadCase(files[name])
		require.NoError(t, err)
		for _, run := range runs {
			if !singleRows(run) {
				continue
			}
			played++
			t.Run(run.Name, func(t *testing.T) { playFile(t, run) })
		}
	}
	require.Greater(t, played, 20)
}

// singleRows says that nothing happens in a run but rows that come one by one.
func singleRows(run machine.Run) bool {
	for _, s := range run.Steps {
		switch {
		case s.End:
		case !s.IsBatch, len(s.Batch) != 1, s.Refuse > 0, s.KillBeforeAck:
			return false
		}
	}
	return true
}

func playFile(t *testing.T, run machine.Run) {
	clock := drive.NewClock(run.Clock)
	t.Cleanup(drive.SetClock(clock))
	dir := t.TempDir()
	var text []byte
	for _, s := range run.Steps {
		for _, raw := range s.Batch {
			text = append(append(text, drive.Payload(raw)...), '\n')
		}
	}
	path := filepath.Join(dir, "rows.ndjson")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	setup := drive.Setup{Processors: run.Config, OnEnd: run.OnEnd, StateFile: filepath.Join(dir, "state.db"), Position: []byte(`"ordinal"`)}
	life := func() *drive.Pipe {
		p, err := drive.Start(func(feed, sink map[string]any) map[string]any {
			clear(feed)
			feed["file"] = map[string]any{"paths": []string{path}, "scanner": map[string]any{"lines": map[string]any{}}}
			return drive.InputHost.Build(setup)(feed, sink)
		})
		require.NoError(t, err)
		require.NoError(t, p.WaitEnd(patience))
		return p
	}
	p := life()
	loose := run
	loose.Times = false
	var got []machine.Got
	failed := 0
	for _, m := range p.Sink.Messages() {
		if m.Get(drive.MetaRowKey) == "" {
			require.Error(t, m.Err)
			failed++
			continue
		}
		got = append(got, machine.Got{Payload: m.Payload, Timing: m.Get(drive.MetaTiming), Failed: m.Err != nil})
	}
	require.Empty(t, loose.Compare(got))
	if run.Errors != nil {
		require.Equal(t, *run.Errors, failed)
	}
	if run.Late != nil {
		late, _ := p.Meter.Sum(lateRows)
		require.EqualValues(t, *run.Late, late)
	}
	require.Empty(t, life().Sink.Messages(), "a second reading gives nothing")
}
