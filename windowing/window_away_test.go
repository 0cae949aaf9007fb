package windowing

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// brokenReader reads until it is broken.
type brokenReader struct {
	kv.Reader
	err error
}

func (r *brokenReader) Get(key []byte) ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	return r.Reader.Get(key)
}

func (r *brokenReader) Scan(from, to []byte, visit func(key, value []byte) error) error {
	if r.err != nil {
		return r.err
	}
	return r.Reader.Scan(from, to, visit)
}

// TestWindowAwayBroken: a step that needs what cannot be read back breaks.
func TestWindowAwayBroken(t *testing.T) {
	damage := errors.New("bad page")
	open := func() (*Window, *brokenReader) {
		store := kv.NewMemory()
		w, r := testWindow(t), &brokenReader{Reader: store}
		w.Bound(1, r)
		w.Process(Instant{Late: watermark.Unset}, []Row{testRow(3, "a", 1), testRow(4, "b", 1)}, &Output{})
		saveTo(t, w, store)
		w.Committed()
		require.Zero(t, w.state.groups)
		require.Equal(t, 2, w.Groups())
		r.err = damage
		return w, r
	}
	out := &Output{}

	w, _ := open()
	w.Process(Instant{Late: watermark.Unset}, []Row{testRow(5, "b", 1)}, out)
	require.ErrorIs(t, out.err, damage)

	out.Reset()
	w, _ = open()
	require.False(t, w.Advance(Instant{Late: watermark.Unset, Close: 10}, 100, out))
	require.ErrorIs(t, out.err, damage)

	out.Reset()
	w, r := open()
	r.err = nil
	require.False(t, w.Advance(Instant{Late: watermark.Unset, Close: 10}, 1, out))
	require.NoError(t, out.err)
	require.True(t, w.Advance(Instant{Late: 10, Close: 10}, 100, out))
	require.Equal(t, []string{`[0,10) "a" 1 1`, `[0,10) "b" 1 1`}, lines(out))
}

// TestWindowMemory: with many groups no more than the bound and what one commit
// brings stays in memory.
func TestWindowMemory(t *testing.T) {
	const groups, batch, bound = 200_000, 5000, 4 << 20
	store := kv.NewMemory()
	w := testWindow(t)
	w.Bound(bound, store)
	largest := int64(0)
	for round := range 2 {
		for from := 0; from < groups; from += batch {
			var rows []Row
			for i := from; i < from+batch; i++ {
				rows = append(rows, testRow(watermark.Time(i%10), fmt.Sprintf("customer-%d", i), 1))
			}
			w.Process(Instant{Late: watermark.Unset}, rows, &Output{})
			saveTo(t, w, store)
			w.Committed()
			largest = max(largest, w.Held())
		}
		require.Equal(t, groups, w.Groups(), "round %d", round)
	}
	require.Less(t, largest, int64(bound))

	rows := 0
	out := &Output{}
	for done := false; !done; {
		done = w.Advance(Instant{Late: watermark.Unset, Close: 10}, 4096, out)
		for _, line := range lines(out) {
			require.Contains(t, line, " 2 2") // both rows of each group
			rows++
		}
		saveTo(t, w, store)
		w.Committed()
	}
	require.Equal(t, groups, rows)
	require.Zero(t, w.Groups())
}

// TestWindowPageKeeps: a window that is handed out by pages reads the groups that are
// in memory, and leaves them what they are for the windows behind it.
func TestWindowPageKeeps(t *testing.T) {
	const large = 65535 // two squares carry into the next digit of their sum
	grid, err := NewSliding(20, 10, 0)
	require.NoError(t, err)
	run := func(bound int64) []string {
		store, out := kv.NewMemory(), &Output{}
		w := NewWindow(WindowConfig{
			Name: "w", Assigner: grid, GroupBy: []GroupField{{Name: "k", Expr: "this.k"}},
			Aggregates: parseAggregates(t, "count()", "variance(this.v)"),
		})
		if bound > 0 {
			w.Bound(bound, store)
		}
		w.Process(Instant{Late: watermark.Unset}, []Row{testRow(3, "a", 1), testRow(4, "b", large)}, out)
		saveTo(t, w, store)
		w.Committed()
		w.Process(Instant{Late: watermark.Unset}, []Row{testRow(4, "b", large), testRow(4, "b", 1)}, out)
		require.True(t, w.Advance(Instant{Late: watermark.Unset, Close: 10}, 100, out))
		require.True(t, w.Advance(Instant{Late: 10, Close: 20}, 100, out))
		return lines(out)
	}
	require.Equal(t, run(0), run(1))
}
