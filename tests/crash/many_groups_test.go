package crash

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/life"
	"github.com/connect-windowed/connect-windowed/windowing/host/failpoint"
)

// manyGroups is how many groups close at once.
func manyGroups() int {
	if race {
		return 20_000
	}
	return 200_000
}

// A window with very many groups comes out whole, each of them once, although the
// process is killed in the middle of it again and again.
func TestKilledWhileManyGroupsClose(t *testing.T) {
	t.Parallel()
	base := life.Seed(t)
	rnd := rand.New(rand.NewPCG(base, 0))
	s := &scenario{dir: t.TempDir(), form: inputHost, pos: "ordinal"}
	s.source = fmt.Sprintf("file: { paths: [ %q ], scanner: { lines_batch: {} } }", s.file(0))
	writeGroups(t, s.file(0), manyGroups())
	killed := 0
	for killed < 4 {
		before := len(s.entries(t))
		env := []string{fmt.Sprintf("%s=%s:%d", failpoint.Env, []string{failpoint.MidClose, failpoint.AfterCommit, failpoint.BeforeCommit}[killed%3], 2+rnd.IntN(8))}
		p := launch(t, s.dir, s.config(), env)
		p.ready()
		select {
		case <-p.Exited:
		case <-time.After(patience):
			require.Fail(t, "the failpoint is never reached", p.Log.String())
		}
		if p.status() != -1 { // everything came out before its point
			break
		}
		killed++
		total.Add(1)
		t.Logf("life %d: %d rows", killed, len(s.entries(t))-before)
	}
	require.GreaterOrEqual(t, killed, 2)
	start := time.Now()
	p := launch(t, s.dir, s.config(), nil)
	require.Zero(t, p.wait(), "exit status\n%s", p.Log)
	t.Logf("the last life took %s", time.Since(start))
	rows, ids := map[string]bool{}, map[string]string{}
	for _, e := range s.entries(t) {
		require.Equal(t, "1", e.Revision)
		if old, seen := ids[e.RowID]; seen {
			require.Equal(t, old, string(e.Payload))
		}
		ids[e.RowID] = string(e.Payload)
		rows[e.RowKey] = true
	}
	require.Len(t, rows, manyGroups())
	require.Len(t, ids, manyGroups())
}

// writeGroups writes a row for each group of a window, and one that closes it.
func writeGroups(t testing.TB, path string, groups int) {
	file, err := os.Create(path)
	require.NoError(t, err)
	out := bufio.NewWriter(file)
	for i := range groups {
		fmt.Fprintf(out, `{"ts":%d,"k":"group %d","v":%d}`+"\n", i%10_000, i*7919%groups, i)
	}
	fmt.Fprintf(out, `{"ts":30000,"k":"last","v":1}`+"\n")
	require.NoError(t, out.Flush())
	require.NoError(t, file.Close())
}
