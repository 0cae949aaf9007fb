package tests

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
	"github.com/connect-windowed/connect-windowed/tests/machine"
)

// goldens are the recorded answers that the product gives, by the name of the
// file in testdata/golden. A file is added by copying it and one line here.
var goldens = []string{
	"tumbling-10s",
	"tumbling-1h-offset",
	"tumbling-nulls",
	"tumbling-update",
	"tumbling-complete",
	"sliding-10m-5m",
	"sliding-12m-5m",
	"sliding-30s-7s-offset",
	"sliding-update",
	"session-gap",
	"session-dynamic-gap",
	"chain-session-tumbling",
	"chain-tumbling-tumbling",
	"union-max",
	"union-min",
	"union-min-two-delays",
	"example-bank",
	"example-clicks",
	"example-guide-append",
	"example-guide-complete",
	"example-guide-late-complete",
	"example-guide-update",
	"example-older-than-watermark",
	"example-shop-session",
	"example-shop-sliding-update",
	"example-shop-tumbling-append",
	"example-shop-tumbling-update",
	"state-timeout",
	"example-shop-streak",
	"deviation-before-1970",
	"deviation-timer-equal",
	"deviation-session-close-equal",
	"deviation-session-late-equal",
	"deviation-session-late-touches-open",
	"chain-join-tumbling",
	"dedupe-id-time",
	"dedupe-within",
	"deviation-chain-join-hold",
	"deviation-dedupe-time-late-equal",
	"deviation-dedupe-within-late-equal",
	"deviation-join-evict-equal",
	"deviation-join-late-equal",
	"deviation-join-null-keys-full",
	"deviation-join-null-keys-left",
	"example-shop-dedupe-time",
	"example-shop-dedupe-within",
	"example-shop-join-inner",
	"example-shop-join-left",
	"join-full",
	"join-full-negative-upper",
	"join-inner",
	"join-inner-asymmetric",
	"join-left",
	"join-left-asymmetric",
	"join-right",
	"join-semi",
}

func TestGoldens(t *testing.T) {
	files, err := machine.Files("testdata/golden")
	require.NoError(t, err)
	for _, name := range goldens {
		require.Contains(t, files, name)
		run, err := machine.LoadGolden(files[name])
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) { playGolden(t, run) })
		delete(files, name)
	}
	require.Empty(t, files, "files without a line in the table")
}

func playGolden(t *testing.T, run machine.Run) {
	for _, form := range drive.Forms() {
		for _, encoding := range encodings() {
			for _, late := range []string{"", "pass"} {
				play := drive.Play{Run: run, Form: form, Encoding: encoding, Durable: late == "", Tight: encoding.Name == drive.Lines.Name, Late: late}
				t.Run(play.Form.Name+"/"+play.Name(), func(t *testing.T) {
					out := play.Start(t)
					checkPlay(t, play, out)
					checkGolden(t, play, out)
				})
			}
		}
	}
}

// checkGolden compares what only goldens say: which rows are late, and W.
func checkGolden(t *testing.T, play drive.Play, out drive.Outcome) {
	run := play.Run
	if play.Late == "pass" && run.LateRows != nil {
		late := make([][]int, len(run.LateRows))
		for i, m := range out.Late {
			var row struct {
				Row int
				ID  any
			}
			require.NoError(t, json.Unmarshal(m.Payload, &row))
			at := out.LateAt[i] - 1
			if id, ok := row.ID.(float64); ok && row.Row == 0 { // of a random stream
				row.Row = int(id)
			}
			late[at] = append(late[at], row.Row)
		}
		for i := range late {
			require.ElementsMatch(t, run.LateRows[i], late[i], "late rows of batch %d", i+1)
		}
	}
	for i, w := range run.Watermarks {
		if got := out.AfterW[i]; got != nil {
			require.NotNil(t, w, "batch %d", i+1)
			require.Equal(t, *w, *got, "watermark after batch %d", i+1)
		}
	}
}
