package tests

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
	"github.com/connect-windowed/connect-windowed/tests/machine"
)

// cases are the case files that the product answers, by the number of the file in
// testdata/cases. A file is added by copying it and one line here.
var cases = []string{
	"001", // old events close windows
	"002", // the last window stays open
	"004", // lateness at the start of the batch
	"005", // older than the watermark, window open
	"006", // a row from the future
	"007", // partitions out of step
	"008", // an idle partition
	"010", // a window over a window
	"012", // a row on the edge of a window
	"013", // before 1970
	"014", // windows with an offset
	"016", // update mode sends the full value
	"017", // a closed window is not created again
	"018", // size not a multiple of slide
	"019", // late for one window, in time for the next
	"021", // a late row bridges sessions
	"023", // a session is not closed early
	"024", // a late row does not get into the next session
	"026", // sessions that merge are taken back
	"027", // local days
	"029", // time zones without a zone database
	"030", // units
	"032", // RFC 3339
	"033", // null, missing, malformed
	"035", // composite keys
	"036", // null, empty and missing keys
	"039", // keys beyond the store's limit
	"040", // integers above 2^53
	"042", // money
	"043", // aggregates over nothing
	"045", // NaN and infinity
	"047", // duplicate, late or new again
	"048", // a producer retries with a new time
	"049", // remembered, but never delivered
	"051", // the memory of a deduplication is bounded
	"052", // no null row after a match
	"053", // no null row before its time
	"054", // times on the bounds
	"055", // a silent side
	"056", // null keys
	"059", // a timer and a row that moves it in one batch
	"061", // a crash in the middle of a window
	"062", // redelivery is not counted twice
	"064", // the watermark survives
	"066", // changed definition
	"070", // payloads that are not JSON
	"072", // nothing in a batch
	"073", // very many overlapping windows
	"076", // out of order in overlapping windows
	"r01", // revisions over restarts, cumulative and filled windows: not a given case
	"r02", // rows that fail behind the watermark which they move: not a given case
}

func TestCases(t *testing.T) {
	files, err := machine.Files("testdata/cases")
	require.NoError(t, err)
	for _, name := range cases {
		require.Contains(t, files, name)
		runs, err := machine.LoadCase(files[name])
		require.NoError(t, err)
		for _, run := range runs {
			t.Run(run.Name, func(t *testing.T) { playAll(t, run) })
		}
		delete(files, name)
	}
	require.Empty(t, files, "files without a line in the table")
}

// playAll plays a run in every form and encoding that can show something of it.
func playAll(t *testing.T, run machine.Run) {
	for _, form := range drive.Forms() {
		if !form.Clocked && needsClock(run) {
			continue
		}
		t.Run(form.Name, func(t *testing.T) {
			plays := func(t *testing.T) {
				for _, play := range playsOf(run, form) {
					t.Run(play.Name(), func(t *testing.T) { checkPlay(t, play, play.Start(t)) })
				}
			}
			if form.Settled && failsToStart(run) {
				inChild(t, plays)
				return
			}
			plays(t)
		})
	}
}

// playsOf varies what must not change the answer: how a row is read, where state
// lies and whether it stays in memory, what becomes of late rows.
func playsOf(run machine.Run, form drive.Form) (plays []drive.Play) {
	for _, encoding := range encodings() {
		play := drive.Play{Run: run, Form: form, Encoding: encoding, Durable: true}
		plays = append(plays, play)
		if encoding.Name == drive.Lines.Name {
			play.Tight = true
			plays = append(plays, play)
			play.Tight = false
		}
		play.Late = "pass"
		if play.Durable = needsState(run); !play.Durable || encoding.Raw {
			plays = append(plays, play)
		}
	}
	return plays
}

// encodings are all, or one where answers are not what is looked at.
func encodings() []drive.Encoding {
	if race {
		return []drive.Encoding{drive.Lines}
	}
	return drive.Encodings()
}

func failsToStart(run machine.Run) bool {
	for _, s := range run.Steps {
		if s.Error != "" {
			return true
		}
	}
	return false
}

// needsClock says that rows of the run come of time that passes or of the end of
// the input, which only an input can know.
func needsClock(run machine.Run) bool {
	for _, e := range run.Expected {
		if e.AtEnd || e.Step > 0 && !run.Steps[e.Step-1].IsBatch {
			return true
		}
	}
	return false
}

func needsState(run machine.Run) bool {
	for _, s := range run.Steps {
		if s.Restart || s.Kill || s.KillBeforeAck {
			return true
		}
	}
	return false
}

// checkPlay compares what came out with what the run expects.
func checkPlay(t *testing.T, play drive.Play, out drive.Outcome) {
	t.Helper()
	run := play.Run
	if diff := run.Compare(out.Rows); diff != "" {
		require.Fail(t, "rows differ", diff)
	}
	for _, m := range append(out.Failed, out.Late...) {
		require.True(t, play.Unchanged(m), "a message that was passed on has changed: %s %v", m.Payload, m.Meta)
	}
	for _, m := range out.Failed {
		require.Empty(t, m.Get(drive.MetaRowKey))
		require.Empty(t, m.Get(drive.MetaLateOperator))
	}
	if run.Errors != nil {
		failedRows := 0
		for _, row := range out.Rows {
			if row.Failed {
				failedRows++
			}
		}
		require.Equal(t, *run.Errors, len(out.Failed)+failedRows, "messages that left with an error")
	}
	checkLate(t, play, out)
	checkFinals(t, play, out)
}

func checkLate(t *testing.T, play drive.Play, out drive.Outcome) {
	t.Helper()
	for _, m := range out.Late {
		require.NoError(t, m.Err)
		require.NotEmpty(t, m.Get(drive.MetaLateBy))
		for _, key := range []string{drive.MetaRowKey, drive.MetaRowID, drive.MetaRevision, drive.MetaTiming} {
			require.Empty(t, m.Get(key), "a late row carries %s", key)
		}
	}
	if play.Late != "pass" {
		require.Empty(t, out.Late, "late rows are dropped unless told otherwise")
	} else if play.Run.Late != nil {
		require.Len(t, out.Late, *play.Run.Late, "late rows passed on")
	}
	checkCounters(t, play, out)
}

// checkFinals looks at the metadata of the final rows.
func checkFinals(t *testing.T, play drive.Play, out drive.Outcome) {
	t.Helper()
	window, ok := drive.WindowOf(play.Run.Config)
	switch {
	case play.Run.OnEnd == "flush":
		return
	case !ok:
		checkOnce(t, out.Final)
		return
	}
	if window.Revises {
		checkRevisions(t, out.Final)
		return
	}
	for _, m := range out.Final {
		w := window
		if named := m.Get(drive.MetaOperator); changesConfig(play.Run) && named != "" {
			w.Name = named
		}
		require.NoError(t, w.CheckFinal(m), "row %.300s\nmetadata %v", m.Payload, m.Meta)
	}
	checkOnce(t, out.Final)
}

// checkOnce looks at what rows that come once have in common.
func checkOnce(t *testing.T, finals []drive.Message) {
	t.Helper()
	seen := map[string]bool{}
	for _, m := range finals {
		key := m.Get(drive.MetaRowKey)
		require.NotEmpty(t, key, "row %.300s", m.Payload)
		require.False(t, seen[key], "two finals with the row key %s", key)
		seen[key] = true
		require.Equal(t, "on_time", m.Get(drive.MetaTiming))
		require.NotEmpty(t, m.Get(drive.MetaEventTime))
	}
}

func changesConfig(run machine.Run) bool {
	for _, s := range run.Steps {
		if s.Config != nil {
			return true
		}
	}
	return false
}
