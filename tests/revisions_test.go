package tests

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// checkRevisions looks at rows that may come again: the revisions of a row key
// are 1, 2, 3 and so on, their timing goes from early to late, and what is deleted stays so.
func checkRevisions(t *testing.T, rows []drive.Message) {
	t.Helper()
	order := map[string]int{"early": 0, "on_time": 1, "late": 2, "delete": 3}
	revisions, timings := map[string]int{}, map[string]int{}
	for _, m := range rows {
		key := m.Get(drive.MetaRowKey)
		revisions[key]++
		require.Equal(t, strconv.Itoa(revisions[key]), m.Get(drive.MetaRevision), "revision of %s", key)
		timing, known := order[m.Get(drive.MetaTiming)]
		require.True(t, known, "timing %q of %s", m.Get(drive.MetaTiming), key)
		require.GreaterOrEqual(t, timing, timings[key], "timing of %s", key)
		timings[key] = timing
	}
}
