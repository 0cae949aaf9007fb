package windowing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// earlyWindow is testWindow with early rows, 0: without.
func earlyWindow(t testing.TB, early time.Duration) *Window {
	cfg := testWindow(t).config
	cfg.Early = early
	return NewWindow(cfg)
}

// TestEarlyMayChange: early rows are added and taken away over restarts, in the
// middle of handing them out too; revisions go on.
func TestEarlyMayChange(t *testing.T) {
	store, out := kv.NewMemory(), &Output{}
	in := Instant{Late: watermark.Unset, Close: watermark.Unset, Wall: 1000}
	next := func(w *Window, early time.Duration) *Window {
		if w != nil {
			saveTo(t, w, store)
		}
		w = earlyWindow(t, early)
		require.NoError(t, w.Load(store))
		return w
	}
	w := next(nil, 0)
	w.Process(in, []Row{testRow(1, "a", 1), testRow(1, "b", 1), testRow(1, "c", 1)}, out)
	require.True(t, w.Advance(in, 10, out))

	w = next(w, 50)
	w.Process(in, []Row{testRow(2, "a", 1), testRow(2, "b", 1)}, out)
	at, ok := w.Alarm()
	require.True(t, ok)
	require.Equal(t, watermark.Time(1050), at)
	in.Wall = 1050
	require.False(t, w.Advance(in, 1, out))
	require.Equal(t, []string{`[0,10) "a" 2 2 early 1`}, lines(out))

	w = next(w, 0) // b waits
	w.Process(in, []Row{testRow(3, "c", 1)}, out)
	require.True(t, w.Advance(in, 10, out))
	require.Empty(t, lines(out))

	w = next(w, 50)
	w.Process(in, []Row{testRow(3, "b", 1)}, out)
	w = next(w, 0) // b stirs
	_, ok = w.Alarm()
	require.False(t, ok)
	in.Close = 10
	require.True(t, w.Advance(in, 10, out))
	require.Equal(t, []string{`[0,10) "a" 2 2 on_time 2`, `[0,10) "b" 3 3`, `[0,10) "c" 2 2`}, lines(out))
	saveTo(t, w, store)
	requireProgressOnly(t, store)
}

// TestEarlyClockSetBack: a wall clock that was set back holds early rows up by no
// more than the setting; one that was set forward brings them.
func TestEarlyClockSetBack(t *testing.T) {
	w, out := earlyWindow(t, 50), &Output{}
	in := Instant{Late: watermark.Unset, Close: watermark.Unset, Wall: 1_000_000}
	w.Process(in, []Row{testRow(1, "a", 1)}, out)
	in.Wall = 1000
	require.True(t, w.Advance(in, 10, out))
	at, _ := w.Alarm()
	require.Equal(t, watermark.Time(1050), at)
	in.Wall = 2_000_000
	require.True(t, w.Advance(in, 10, out))
	require.Equal(t, []string{`[0,10) "a" 1 1 early 1`}, lines(out))
	_, ok := w.Alarm()
	require.False(t, ok)
}

// TestEarlyOfManyWindows: a row in very many windows is marked in them once for all
// that come until the alarm rings.
func TestEarlyOfManyWindows(t *testing.T) {
	grid, err := NewSliding(MaxOverlap, 1, 0)
	require.NoError(t, err)
	cfg := testWindow(t).config
	cfg.Assigner, cfg.Early = grid, time.Hour
	w, out := NewWindow(cfg), &Output{}
	in := Instant{Late: watermark.Unset, Close: watermark.Unset}
	start := time.Now()
	for range 1000 {
		w.Process(in, []Row{testRow(1, "a", 1)}, out)
		require.True(t, w.Advance(in, 10, out))
	}
	require.Equal(t, MaxOverlap, w.revisions.stirs)
	require.Less(t, time.Since(start), time.Minute)
}
