package windowing

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// testSession counts and sums in sessions with a gap of 10 ns.
func testSession(t testing.TB, change func(*SessionConfig)) *Session {
	cfg := SessionConfig{Name: "s", Gap: 10, GroupBy: []GroupField{{Name: "k", Expr: "this.k"}},
		Aggregates: parseAggregates(t, "count()", "sum(this.v)"), PassLate: true}
	if change != nil {
		change(&cfg)
	}
	return NewSession(cfg)
}

func inUpdateMode(cfg *SessionConfig) { cfg.Mode = Update }

var unsetInstant = Instant{Late: watermark.Unset, Close: watermark.Unset}

// numbered gives rows their arrivals.
func numbered(from int64, rows ...Row) []Row {
	for i := range rows {
		rows[i].Arrival = from + int64(i)
	}
	return rows
}

func TestSessionResult(t *testing.T) {
	s, out := testSession(t, nil), &Output{}
	s.Process(unsetInstant, numbered(1, testRow(3, "a", 5)), out)
	require.True(t, s.Advance(Instant{Close: 13}, 1, out))
	require.Empty(t, out.items, "a row at 13 still joins")
	require.True(t, s.Advance(Instant{Close: 14}, 1, out))
	require.Len(t, out.items, 1)
	require.Equal(t, &Result{
		Time: 12, Timing: OnTime, Revision: 1, RowKey: RowKey("s", groupKey(agg.String("a")), Span{3, 13}),
		Spanned: true, Start: 3, End: 13, Key: groupKey(agg.String("a")), Values: []agg.Value{agg.Int(1), agg.Int(5)},
	}, out.items[0].result)
	require.Equal(t, Tally{Emitted: 1}, out.tally)
}

// TestSessionTakesBack: a delete row names bounds and group, and nothing else.
func TestSessionTakesBack(t *testing.T) {
	s, out := testSession(t, inUpdateMode), &Output{}
	s.Process(unsetInstant, numbered(1, testRow(3, "a", 5)), out)
	require.True(t, s.Advance(unsetInstant, 1, out))
	out.Reset()
	s.Process(unsetInstant, numbered(2, testRow(4, "a", 5)), out)
	require.False(t, s.Advance(unsetInstant, 1, out), "two rows do not fit into one part")
	require.True(t, s.Advance(unsetInstant, 1, out))
	require.Equal(t, &Result{
		Time: 12, Timing: Deleted, Revision: 2, RowKey: RowKey("s", groupKey(agg.String("a")), Span{3, 13}),
		Spanned: true, Start: 3, End: 13, Key: groupKey(agg.String("a")),
	}, out.items[0].result)
	require.Equal(t, int64(1), out.items[1].result.Revision)
	require.Equal(t, Span{3, 14}, Span{out.items[1].result.Start, out.items[1].result.End})
}

// TestSessionOlderPair: an operator that hears an older pair keeps its own close.
func TestSessionOlderPair(t *testing.T) {
	s, out, store := testSession(t, nil), &Output{}, kv.NewMemory()
	s.Process(unsetInstant, numbered(1, testRow(5, "a", 1)), out)
	require.True(t, s.Advance(Instant{Late: watermark.Unset, Close: 20}, 10, out))
	require.Equal(t, []string{`[5,15) "a" 1 1 on_time 1`}, sessionLines(out))
	for i, restarted := range []bool{false, true} {
		if restarted {
			saveTo(t, s, store)
			s = testSession(t, nil)
			require.NoError(t, s.Load(store))
		}
		older := Instant{Late: 0, Close: 5}
		s.Process(older, numbered(int64(2+2*i), testRow(9, "a", 1), testRow(10, "b", 1)), out)
		require.True(t, s.Advance(older, 10, out))
		require.Equal(t, []string{"row at 9 flag 2"}, sessionLines(out), "late by the close that was reached")
	}
	require.True(t, s.Advance(Instant{Late: 20, Close: 30}, 10, out))
	require.Equal(t, []string{`[10,20) "b" 2 2 on_time 1`}, sessionLines(out))
}

// TestSessionParts: a large close comes out in parts of at most the limit, over
// restarts too, and so do many updates and what they take back.
func TestSessionParts(t *testing.T) {
	const groups = 100
	for _, mode := range []OutputMode{Append, Update} {
		update := mode == Update
		for _, restart := range []bool{false, true} {
			name := fmt.Sprintf("update=%v restart=%v", update, restart)
			change := func(cfg *SessionConfig) { cfg.Mode = mode }
			s, out, store := testSession(t, change), &Output{}, kv.NewMemory()
			arrival := int64(1)
			parts := func(in Instant) (text []string) {
				for done := false; !done; {
					done = s.Advance(in, 7, out)
					part := sessionLines(out)
					require.LessOrEqual(t, len(part), 7, name)
					text = append(text, part...)
					saveTo(t, s, store)
					if restart {
						s = testSession(t, change)
						require.NoError(t, s.Load(store))
					}
				}
				return text
			}
			for batch := range 2 {
				for i := range groups {
					s.Process(unsetInstant, numbered(arrival, testRow(watermark.Time(batch), fmt.Sprintf("%03d", i*37%groups), 1)), out)
					arrival++
				}
				text := parts(unsetInstant)
				if !update {
					require.Empty(t, text, name)
					continue
				}
				require.Len(t, text, groups*(1+batch), name)
			}
			text := parts(Instant{Close: 12})
			if update {
				require.Empty(t, text, name)
			} else {
				require.Len(t, text, groups, name)
				for i, line := range text {
					require.Equal(t, fmt.Sprintf(`[0,11) "%03d" 2 2 on_time 1`, i), line, name)
				}
			}
			require.Zero(t, s.Windows())
			require.Zero(t, s.Groups())
			requireProgressOnly(t, store)
		}
	}
}

// TestSessionWritesOnlyWhatChanged counts the operations of every commit.
func TestSessionWritesOnlyWhatChanged(t *testing.T) {
	s, out, store := testSession(t, nil), &Output{}, kv.NewMemory()
	require.Zero(t, saveTo(t, s, store), "nothing happened")
	s.Process(unsetInstant, numbered(1, testRow(1, "a", 1), testRow(2, "b", 2), testRow(3, "a", 1), testRow(50, "a", 1)), out)
	require.Equal(t, 3, saveTo(t, s, store), "a session each")
	require.Zero(t, saveTo(t, s, store), "nothing since")
	s.Process(unsetInstant, numbered(5, testRow(-2, "a", 1)), out)
	require.Equal(t, 1, saveTo(t, s, store), "the id stays when the start moves")
	s.Process(unsetInstant, numbered(6, testRow(12, "a", 1), testRow(22, "a", 1), testRow(32, "a", 1), testRow(42, "a", 1)), out)
	require.Equal(t, 2, saveTo(t, s, store), "one session took another one in")
	in := Instant{Late: watermark.Unset, Close: 13}
	require.True(t, s.Advance(in, 10, out))
	require.Equal(t, 2, saveTo(t, s, store), "a session is closed, the progress")
	s.Process(Instant{Late: 13}, numbered(10, testRow(0, "b", 1)), out)
	require.True(t, s.Advance(in, 10, out))
	require.Zero(t, saveTo(t, s, store), "a late row leaves no trace")
	s.Process(Instant{Late: 13}, numbered(11, testRow(12, "b", 1)), out)
	require.True(t, s.Advance(Instant{Late: 13, Close: 100}, 10, out))
	require.Equal(t, 2, saveTo(t, s, store), "one that was never saved is not deleted")
	requireProgressOnly(t, store)
}

// TestSessionDueAfterRestart: what was due and still in state comes out, whatever
// pair the next step has.
func TestSessionDueAfterRestart(t *testing.T) {
	s, out, store := testSession(t, nil), &Output{}, kv.NewMemory()
	s.Process(unsetInstant, numbered(1, testRow(1, "a", 1), testRow(1, "b", 1)), out)
	require.False(t, s.Advance(Instant{Late: watermark.Unset, Close: 12}, 1, out))
	require.Equal(t, []string{`[1,11) "a" 1 1 on_time 1`}, sessionLines(out))
	saveTo(t, s, store)
	s = testSession(t, nil)
	require.NoError(t, s.Load(store))
	require.True(t, s.Advance(Instant{Late: 1, Close: 1}, 10, out))
	require.Equal(t, []string{`[1,11) "b" 1 1 on_time 1`}, sessionLines(out))
}

// TestSessionKeepsNoRow: keys and arguments are the caller's again after Process.
func TestSessionKeepsNoRow(t *testing.T) {
	s, out := testSession(t, nil), &Output{}
	row := testRow(1, "a", 1)
	s.Process(unsetInstant, []Row{row}, out)
	clear(row.Key)
	clear(row.Args)
	require.True(t, s.Advance(Instant{Close: 12}, 10, out))
	require.Equal(t, []string{`[1,11) "a" 1 1 on_time 1`}, sessionLines(out))
}

func TestSessionDefinition(t *testing.T) {
	require.Equal(t, []Setting{{"gap", "10ns"}, {"group_by.k", "this.k"}, {"aggregates.a", "count()"}, {"aggregates.b", "sum(this.v)"}},
		testSession(t, nil).Definition())
	all := testSession(t, func(cfg *SessionConfig) {
		cfg.Gap, cfg.GapExpr, cfg.MaxDuration, cfg.Mode = 0, "this.gap", time.Minute, Update
	})
	require.Equal(t, []Setting{{"gap", "this.gap"}, {"max_duration", "1m0s"}, {"output_mode", "update"}}, all.Definition()[:3])
}

func TestSessionRefuses(t *testing.T) {
	for name, change := range map[string]func(*SessionConfig){
		"no gap":                 func(cfg *SessionConfig) { cfg.Gap = 0 },
		"a negative gap":         func(cfg *SessionConfig) { cfg.Gap = -1 },
		"two gaps":               func(cfg *SessionConfig) { cfg.GapExpr = "this.gap" },
		"a negative bound":       func(cfg *SessionConfig) { cfg.MaxDuration = -1 },
		"a bound below the gap":  func(cfg *SessionConfig) { cfg.MaxDuration = 9 },
		"complete":               func(cfg *SessionConfig) { cfg.Mode = Complete },
		"early updates":          func(cfg *SessionConfig) { cfg.Mode, cfg.Early = Update, 1 },
		"aggregates in disorder": func(cfg *SessionConfig) { cfg.Aggregates[0].Name = "z" },
	} {
		require.Panics(t, func() { testSession(t, change) }, name)
	}
	perRow := testSession(t, func(cfg *SessionConfig) { cfg.Gap, cfg.GapExpr = 0, "this.gap" })
	row := testRow(1, "a", 1)
	row.Args = append(row.Args, agg.Int(0))
	require.Panics(t, func() { perRow.Process(unsetInstant, []Row{row}, &Output{}) })
}

// TestSessionHitAllocatesNothing: rows of sessions that exist.
func TestSessionHitAllocatesNothing(t *testing.T) {
	s, out := testSession(t, nil), &Output{}
	rows := numbered(1, testRow(1, "a", 1), testRow(2, "b", 2), testRow(7, "a", 3))
	s.Process(unsetInstant, rows, out)
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Process(unsetInstant, rows, out) }))
}

// TestSessionManyInAGroup: many open sessions in one group are searched, not
// walked through.
func TestSessionManyInAGroup(t *testing.T) {
	const n = 20_000
	s, out := testSession(t, nil), &Output{}
	for i := range n {
		s.Process(unsetInstant, numbered(int64(i), testRow(watermark.Time(i*100), "a", 1)), out)
	}
	require.Equal(t, n, s.Windows())
	for i := range n {
		s.Process(unsetInstant, numbered(int64(n+i), testRow(watermark.Time((n-1-i)*100+1), "a", 1)), out)
	}
	require.Equal(t, n, s.Windows())
	require.True(t, s.Advance(Instant{Close: watermark.EndOfTime}, 2*n, out))
	require.Len(t, out.items, n)
	require.Zero(t, s.Windows())
}

// TestSessionHaving: what does not meet the condition does not come out, and is
// gone; where the condition fails the row carries the error.
func TestSessionHaving(t *testing.T) {
	failure := errors.New("no answer")
	s, out, store := testSession(t, func(cfg *SessionConfig) {
		cfg.Having = func(res *Result) (bool, error) {
			if n := res.Values[0].AsInt(); n != 2 {
				return n > 2, nil
			}
			return false, failure
		}
	}), &Output{}, kv.NewMemory()
	s.Process(unsetInstant, numbered(1, testRow(1, "a", 1), testRow(1, "b", 1), testRow(2, "b", 1), testRow(1, "c", 1), testRow(1, "c", 1), testRow(1, "c", 1)), out)
	require.True(t, s.Advance(Instant{Close: 20}, 10, out))
	require.Len(t, out.items, 2)
	require.NoError(t, out.items[0].result.Err)
	require.ErrorIs(t, out.items[1].result.Err, failure)
	require.Equal(t, []string{`[1,11) "c" 3 3 on_time 1`, `[1,12) "b" 2 2 on_time 1`}, sessionLines(out))
	saveTo(t, s, store)
	requireProgressOnly(t, store)
}
