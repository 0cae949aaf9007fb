package windowing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// testWindow counts and sums in windows of 10 ns.
func testWindow(t testing.TB) *Window {
	grid, err := NewTumbling(10, 0)
	require.NoError(t, err)
	return NewWindow(WindowConfig{
		Name: "w", Assigner: grid, GroupBy: []GroupField{{Name: "k", Expr: "this.k"}},
		Aggregates: parseAggregates(t, "count()", "sum(this.v)"), PassLate: true,
	})
}

func testRow(at watermark.Time, key string, v int64) Row {
	return Row{Time: at, Key: agg.String(key).AppendKey(nil), Args: []agg.Value{agg.Int(v)}}
}

// lines describes what an output holds and empties it.
func lines(out *Output) (text []string) {
	for _, it := range out.items {
		if it.result == nil {
			text = append(text, fmt.Sprintf("row at %d flag %d", it.row.Time, it.row.Flag))
			continue
		}
		res := it.result
		k, _, err := agg.DecodeKey(res.Key)
		if err != nil {
			panic(err)
		}
		line := fmt.Sprintf("[%d,%d) %s %s", res.Start, res.End, k.AppendJSON(nil), joinValues(res.Values))
		if res.Timing != OnTime || res.Revision != 1 {
			line += fmt.Sprintf(" %s %d", res.Timing, res.Revision)
		}
		text = append(text, line)
	}
	out.Reset()
	return text
}

func joinValues(values []agg.Value) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, string(v.AppendJSON(nil)))
	}
	return strings.Join(parts, " ")
}

// saveTo commits what changed and counts the operations.
func saveTo(t testing.TB, w Operator, store kv.Store) int {
	var b kv.Batch
	w.Save(&b)
	require.NoError(t, store.Commit(&b))
	return b.Len()
}

func TestWindowResult(t *testing.T) {
	w, out := testWindow(t), &Output{}
	w.Process(Instant{Late: watermark.Unset}, []Row{testRow(3, "a", 5)}, out)
	require.True(t, w.Advance(Instant{Close: 10}, 1, out))
	require.Len(t, out.items, 1)
	require.Equal(t, &Result{
		Time: 9, Timing: OnTime, Revision: 1, RowKey: RowKey("w", groupKey(agg.String("a")), Span{0, 10}),
		Spanned: true, Start: 0, End: 10, Key: groupKey(agg.String("a")), Values: []agg.Value{agg.Int(1), agg.Int(5)},
	}, out.items[0].result)
	require.Equal(t, Tally{Emitted: 1}, out.tally)
}

// TestWindowOlderPair: an operator that hears an older pair keeps its own close.
func TestWindowOlderPair(t *testing.T) {
	w, out, store := testWindow(t), &Output{}, kv.NewMemory()
	w.Process(Instant{Late: watermark.Unset, Close: watermark.Unset}, []Row{testRow(5, "a", 1)}, out)
	require.True(t, w.Advance(Instant{Late: watermark.Unset, Close: 20}, 10, out))
	require.Equal(t, []string{`[0,10) "a" 1 1`}, lines(out))
	for _, restarted := range []bool{false, true} {
		if restarted {
			saveTo(t, w, store)
			w = testWindow(t)
			require.NoError(t, w.Load(store))
		}
		older := Instant{Late: 0, Close: 5}
		w.Process(older, []Row{testRow(19, "a", 1), testRow(25, "b", 1)}, out)
		require.True(t, w.Advance(older, 10, out))
		require.Equal(t, 1*time.Nanosecond, out.items[0].row.Mark.LateBy)
		require.Equal(t, []string{"row at 19 flag 2"}, lines(out), "late by the close that was reached")
	}
	require.True(t, w.Advance(Instant{Late: 20, Close: 30}, 10, out))
	require.Equal(t, []string{`[20,30) "b" 2 2`}, lines(out))
}

// TestWindowRowsThatPass: invalid and late rows keep their place.
func TestWindowRowsThatPass(t *testing.T) {
	w, out := testWindow(t), &Output{}
	rows := []Row{{Time: 1, Flag: Invalid}, testRow(2, "a", 1), testRow(3, "a", 1), {Time: 4, Flag: Late}, testRow(30, "a", 1)}
	w.Process(Instant{Late: 10, Close: 10}, rows, out)
	require.Equal(t, Tally{Late: 2, LateBy: 8}, out.tally, "the first of them is 8 ns behind")
	require.Equal(t, []string{"row at 1 flag 1", "row at 2 flag 2", "row at 3 flag 2", "row at 4 flag 2"}, lines(out))
	require.Equal(t, 1, w.Groups())
	require.Equal(t, 1, w.Windows())
}

// TestWindowParts: a large close comes out in parts, over restarts too, and its
// groups are sorted once.
func TestWindowParts(t *testing.T) {
	const groups = 100
	for _, restart := range []bool{false, true} {
		w, out, store := testWindow(t), &Output{}, kv.NewMemory()
		in := Instant{Late: watermark.Unset, Close: watermark.Unset}
		for i := range groups {
			w.Process(in, []Row{testRow(1, fmt.Sprintf("%03d", i*37%groups), 1), testRow(11, "x", 1)}, out)
		}
		in.Close = 20
		var got []string
		for done := false; !done; {
			done = w.Advance(in, 7, out)
			part := lines(out)
			require.LessOrEqual(t, len(part), 7)
			got = append(got, part...)
			saveTo(t, w, store)
			if restart {
				w = testWindow(t)
				require.NoError(t, w.Load(store))
			}
		}
		require.Len(t, got, groups+1)
		for i, line := range got[:groups] {
			require.Equal(t, fmt.Sprintf(`[0,10) "%03d" 1 1`, i), line)
		}
		require.Equal(t, `[10,20) "x" 100 100`, got[groups])
		windows, left := w.Sizes()
		require.Zero(t, windows)
		require.Zero(t, left)
		require.False(t, w.cursor.set)
		requireProgressOnly(t, store)
	}
}

func requireProgressOnly(t testing.TB, store kv.Store) {
	require.NoError(t, store.Scan(nil, nil, func(key, _ []byte) error {
		require.Equal(t, []byte{progressTable}, key)
		return nil
	}))
}

// TestWindowWritesOnlyWhatChanged counts the operations of every commit.
func TestWindowWritesOnlyWhatChanged(t *testing.T) {
	w, out, store := testWindow(t), &Output{}, kv.NewMemory()
	in := Instant{Late: watermark.Unset, Close: watermark.Unset}
	require.Zero(t, saveTo(t, w, store), "nothing happened")
	w.Process(in, []Row{testRow(1, "a", 1), testRow(2, "b", 1), testRow(3, "a", 1), testRow(11, "a", 1)}, out)
	require.Equal(t, 3, saveTo(t, w, store), "a group each")
	require.Zero(t, saveTo(t, w, store), "nothing since")
	w.Process(in, []Row{testRow(1, "a", 1)}, out)
	require.Equal(t, 1, saveTo(t, w, store))
	require.True(t, w.Advance(in, 10, out))
	require.Zero(t, saveTo(t, w, store), "the close did not move")

	w.Process(in, []Row{testRow(1, "b", 1), testRow(11, "b", 1)}, out)
	in.Close = 10
	require.True(t, w.Advance(in, 10, out))
	require.Equal(t, 3, saveTo(t, w, store), "a range, the open group, the progress")

	in.Late = 10
	w.Process(in, []Row{testRow(21, "c", 1)}, out)
	in.Close = 30
	require.True(t, w.Advance(in, 10, out))
	require.Equal(t, 2, saveTo(t, w, store), "a range for [10,20), nothing for [20,30), the progress")
	requireProgressOnly(t, store)

	in.Late = 30
	w.Process(in, []Row{testRow(31, "a", 1), testRow(31, "b", 1), testRow(31, "c", 1)}, out)
	in.Close = 40
	require.False(t, w.Advance(in, 1, out))
	require.Equal(t, 3, saveTo(t, w, store), "the groups not handed out yet, the progress")
	require.False(t, w.Advance(in, 1, out))
	require.Equal(t, 1, saveTo(t, w, store), "the progress")
	require.True(t, w.Advance(in, 1, out))
	require.Equal(t, 2, saveTo(t, w, store), "a range, the progress without a cursor")
}

// TestWindowDueAfterRestart: what was due and still in state comes out, whatever
// pair the next step has.
func TestWindowDueAfterRestart(t *testing.T) {
	w, out, store := testWindow(t), &Output{}, kv.NewMemory()
	in := Instant{Late: watermark.Unset, Close: watermark.Unset}
	w.Process(in, []Row{testRow(1, "a", 1), testRow(1, "b", 1)}, out)
	in.Close = 10
	require.False(t, w.Advance(in, 1, out))
	require.Equal(t, []string{`[0,10) "a" 1 1`}, lines(out))
	saveTo(t, w, store)
	w = testWindow(t)
	require.NoError(t, w.Load(store))
	require.True(t, w.Advance(Instant{Late: 1, Close: 1}, 10, out))
	require.Equal(t, []string{`[0,10) "b" 1 1`}, lines(out))
}

// TestWindowKeepsNoRow: keys and arguments are the caller's again after Process.
func TestWindowKeepsNoRow(t *testing.T) {
	w, out := testWindow(t), &Output{}
	row := testRow(1, "a", 1)
	w.Process(Instant{Late: watermark.Unset}, []Row{row}, out)
	clear(row.Key)
	clear(row.Args)
	require.True(t, w.Advance(Instant{Close: 10}, 10, out))
	require.Equal(t, []string{`[0,10) "a" 1 1`}, lines(out))
}

func TestWindowDefinition(t *testing.T) {
	w := testWindow(t)
	require.Equal(t, []Setting{{"size", "10ns"}, {"offset", "0s"}, {"group_by.k", "this.k"}, {"aggregates.a", "count()"}, {"aggregates.b", "sum(this.v)"}}, w.Definition())
}

func TestWindowRefusesDisorder(t *testing.T) {
	grid, err := NewTumbling(10, 0)
	require.NoError(t, err)
	for _, names := range [][2]string{{"b", "a"}, {"a", "a"}} {
		fields := []GroupField{{Name: names[0]}, {Name: names[1]}}
		require.Panics(t, func() { NewWindow(WindowConfig{Assigner: grid, GroupBy: fields}) })
		aggregates := parseAggregates(t, "count()", "count()")
		aggregates[0].Name, aggregates[1].Name = names[0], names[1]
		require.Panics(t, func() { NewWindow(WindowConfig{Assigner: grid, Aggregates: aggregates}) })
	}
}

// TestWindowHitAllocatesNothing: rows of groups that exist.
func TestWindowHitAllocatesNothing(t *testing.T) {
	w, out := testWindow(t), &Output{}
	rows := []Row{testRow(1, "a", 1), testRow(2, "b", 2), testRow(11, "a", 3)}
	in := Instant{Late: watermark.Unset, Close: watermark.Unset}
	w.Process(in, rows, out)
	require.Zero(t, testing.AllocsPerRun(100, func() { w.Process(in, rows, out) }))
}
