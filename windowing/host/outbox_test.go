package host

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// outboxRig is an outbox with a store and a clock of its own.
type outboxRig struct {
	*outbox
	store kv.Store
	now   time.Time
	last  kv.Batch // of the last save
}

func newOutboxRig(revising bool) *outboxRig {
	return &outboxRig{outbox: newOutbox(noteEdge{}, revising), store: kv.NewMemory(), now: time.Unix(1_700_000_000, 0)}
}

// emit stages rows of one revision and commits them.
func (r *outboxRig) emit(t testing.TB, revision int64, keys ...string) {
	for _, key := range keys {
		r.stage(&note{key: key, n: revision}, `["`+key+`"]`, revision)
	}
	r.commit(t)
}

func (r *outboxRig) commit(t testing.TB) {
	r.last.Reset()
	rows := r.save(&r.last)
	r.saved(rows)
	require.NoError(t, r.store.Commit(&r.last))
}

// restart goes on with what is in the store.
func (r *outboxRig) restart(t testing.TB) {
	r.outbox = newOutbox(noteEdge{}, r.revising)
	require.NoError(t, r.load(r.store))
}

// hand gives the next group its way, nil if none is due.
func (r *outboxRig) hand(limit int) *group {
	g := r.take(limit, r.now)
	if g != nil {
		r.handed(g)
	}
	return g
}

// stored counts the rows in the store.
func (r *outboxRig) stored(t testing.TB) (n int) {
	require.NoError(t, r.store.Scan(nil, nil, func(key, value []byte) error {
		b, err := newOutbox(noteEdge{}, false).read(key, value)
		if err == nil {
			n += len(b.rows)
		}
		return err
	}))
	return n
}

// records counts the blocks in the store.
func (r *outboxRig) records(t testing.TB) (n int) {
	require.NoError(t, r.store.Scan(nil, nil, func(_, _ []byte) error { n++; return nil }))
	return n
}

func names(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("%04d", i))
	}
	return all
}

func keysOf(g *group) (keys []string) {
	for _, row := range g.rows {
		keys = append(keys, row.message.(*note).key)
	}
	return keys
}

func all(g *group) (failed []int) {
	for i := range g.rows {
		failed = append(failed, i)
	}
	return failed
}

func TestOutboxHandsOverInOrder(t *testing.T) {
	r := newOutboxRig(false)
	r.stage(&note{key: "staged"}, "", 0)
	require.Nil(t, r.hand(10), "a row that is not on disk does not leave")
	r.commit(t)
	r.emit(t, 1, names(0, 5)...)
	require.Equal(t, []string{"staged", "0000", "0001"}, keysOf(r.take(3, r.now)))
	first := r.hand(3)
	require.Equal(t, []string{"staged", "0000", "0001"}, keysOf(first), "asking takes nothing")
	second := r.hand(3)
	require.Equal(t, names(2, 5), keysOf(second))
	require.Nil(t, r.hand(3))
	r.settle(second, nil, r.now)
	r.commit(t)
	require.Equal(t, 3, r.stored(t))
	require.False(t, r.empty())
	r.settle(first, nil, r.now)
	require.False(t, r.empty(), "the removal is not on disk")
	r.commit(t)
	require.True(t, r.empty())
	require.Zero(t, r.stored(t))
}

// A refused batch comes back in halves, down to single rows, each later than the
// one before.
func TestOutboxHalves(t *testing.T) {
	r := newOutboxRig(false)
	r.emit(t, 1, names(0, 10)...)
	var sizes []int
	seen := map[string]int{}
	wait := firstBackoff
	for round := range 12 {
		groups := []*group{}
		for g := r.hand(10); g != nil; g = r.hand(10) {
			groups = append(groups, g)
		}
		for _, g := range groups {
			sizes = append(sizes, len(g.rows))
			for _, key := range keysOf(g) {
				seen[key]++
				require.Equal(t, round+1, seen[key])
			}
			r.settle(g, all(g), r.now)
			require.Equal(t, round+1, r.retry[len(r.retry)-1].attempt)
		}
		r.now = r.now.Add(wait - 1)
		require.Nil(t, r.hand(10), "round %d comes again after %s", round, wait)
		due, ok := r.due()
		require.True(t, ok)
		require.Equal(t, r.now.Add(1), due)
		r.now = due
		wait = min(2*wait, lastBackoff)
	}
	require.Equal(t, []int{10, 5, 5, 3, 2, 3, 2, 2, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, sizes[:25])
	require.EqualValues(t, 120, r.nacked)
	require.Len(t, seen, 10)
	require.Equal(t, 10, r.unread())
}

// Rows that are named come back, their neighbours are through.
func TestOutboxSingleRows(t *testing.T) {
	r := newOutboxRig(false)
	r.emit(t, 1, names(0, 8)...)
	r.settle(r.hand(8), []int{0, 3, 7}, r.now)
	r.commit(t)
	require.Equal(t, 3, r.stored(t))
	require.Equal(t, 3, r.waiting)
	r.restart(t)
	require.Equal(t, []string{"0000", "0003", "0007"}, keysOf(r.take(8, r.now)), "a restart forgets the back-off only")
}

// New rows pass rows that wait, and a row that waits passes new ones when it is due.
func TestOutboxFlowsPastRefusals(t *testing.T) {
	r := newOutboxRig(false)
	r.emit(t, 1, names(0, 4)...)
	bad := r.hand(1)
	r.settle(bad, all(bad), r.now)
	require.Equal(t, names(1, 3), keysOf(r.hand(2)))
	r.now = r.now.Add(firstBackoff)
	require.Equal(t, names(0, 1), keysOf(r.hand(2)))
	require.Equal(t, names(3, 4), keysOf(r.hand(2)))
}

func TestOutboxDeletesNeighboursAsOne(t *testing.T) {
	r := newOutboxRig(false)
	r.emit(t, 1, names(0, 1000)...)
	r.settle(r.hand(400), nil, r.now) // up to the end of a block
	require.Equal(t, 400/blockRows*blockRows, len(r.settled))
	r.settle(r.hand(1), []int{0}, r.now)
	r.settle(r.hand(1000), nil, r.now)
	r.commit(t)
	require.Equal(t, 3, r.last.Len(), "two ranges, and between them a block that keeps one row")
	require.Equal(t, 1, r.stored(t))
	require.Equal(t, 1, r.records(t))
}

// A refused row whose next revision is here is not delivered any more, wherever it
// waits.
func TestOutboxDropsSupersededRows(t *testing.T) {
	for _, test := range []struct {
		name string
		play func(r *outboxRig)
	}{
		{"refused after the next came", func(r *outboxRig) {
			old := r.hand(2)
			r.emit(t, 2, "a")
			r.settle(old, all(old), r.now)
		}},
		{"the next came while it waited", func(r *outboxRig) {
			old := r.hand(2)
			r.settle(old, all(old), r.now)
			r.emit(t, 2, "a")
		}},
		{"the next was delivered while it waited", func(r *outboxRig) {
			old := r.hand(2)
			r.settle(old, all(old), r.now)
			r.emit(t, 2, "a")
			r.settle(r.hand(2), nil, r.now)
			r.emit(t, 2, "c")
		}},
		{"the next was delivered first", func(r *outboxRig) {
			old := r.hand(2)
			r.emit(t, 2, "a")
			r.settle(r.hand(2), nil, r.now)
			r.settle(old, all(old), r.now)
			r.emit(t, 2, "c")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newOutboxRig(true)
			r.emit(t, 1, "a", "b")
			test.play(r)
			r.now = r.now.Add(time.Second)
			var got []string
			for g := r.hand(1); g != nil; g = r.hand(1) {
				got = append(got, fmt.Sprint(g.rows[0].message.(*note).key, g.rows[0].revision))
				r.settle(g, nil, r.now)
			}
			require.Contains(t, got, "b1")
			require.NotContains(t, got, "a1")
			r.commit(t)
			require.True(t, r.empty())
			require.Zero(t, r.stored(t))
			require.Empty(t, r.latest)
		})
	}
}

// A row that is on its way when the host stops comes again.
func TestOutboxRestart(t *testing.T) {
	r := newOutboxRig(true)
	r.emit(t, 1, names(0, 6)...)
	r.settle(r.hand(2), nil, r.now)
	r.hand(2)
	r.commit(t)
	r.restart(t)
	require.Equal(t, names(2, 6), keysOf(r.hand(10)))
	r.emit(t, 2, "0002")
	require.EqualValues(t, 7, r.ready[0].seq, "numbers go on")
}

// Rows are neither lost nor stuck, whatever is refused and whenever the host
// restarts; with revisions the last of each key arrives.
func TestOutboxRandomly(t *testing.T) {
	rnd := newSeed(t)
	for range 60 {
		r := newOutboxRig(rnd.IntN(2) == 0)
		refused := []float64{0, 0.2, 0.9}[rnd.IntN(3)]
		newest, got := map[string]int64{}, map[string]int64{}
		var flying []*group
		for step := 0; step < 300 || len(flying) > 0 || r.unread() > 0; step++ {
			require.Less(t, step, 100_000, "no end")
			switch what := rnd.IntN(10); {
			case what < 2 && step < 300:
				for range rnd.IntN(30) {
					key := fmt.Sprint(rnd.IntN(40))
					newest[key]++
					r.stage(&note{key: key}, key, newest[key])
				}
			case what < 5:
				if g := r.hand(1 + rnd.IntN(50)); g != nil {
					flying = append(flying, g)
				}
			case what < 8 && len(flying) > 0:
				i := rnd.IntN(len(flying))
				r.settle(flying[i], take(rnd, flying[i], refused, got), r.now)
				flying = append(flying[:i], flying[i+1:]...)
			case what == 8:
				r.now = r.now.Add(time.Duration(rnd.Int64N(int64(lastBackoff))))
			default:
				if r.commit(t); rnd.IntN(20) == 0 {
					r.restart(t)
					flying = nil
				}
			}
		}
		r.commit(t)
		require.Equal(t, newest, got)
		require.True(t, r.empty())
		require.Zero(t, r.stored(t))
		require.Empty(t, r.latest)
	}
}

// take is a sink: it takes rows, the newest revision of each key counts, or
// refuses some.
func take(rnd *rand.Rand, g *group, refused float64, got map[string]int64) (failed []int) {
	for i, row := range g.rows {
		if rnd.Float64() < refused {
			failed = append(failed, i)
			continue
		}
		got[row.key] = max(got[row.key], row.revision)
	}
	return failed
}

// A damaged record stops the start.
func TestOutboxDamage(t *testing.T) {
	r := newOutboxRig(false)
	r.emit(t, 1, "a")
	var key, value []byte
	require.NoError(t, r.store.Scan(nil, nil, func(k, v []byte) error {
		key, value = append(key, k...), append(value, v...)
		return nil
	}))
	for i := range value {
		broken := append([]byte(nil), value...)
		broken[i] ^= 1
		var b kv.Batch
		b.Put(key, broken)
		require.NoError(t, r.store.Commit(&b))
		require.Error(t, newOutbox(noteEdge{}, false).load(r.store))
	}
}

func BenchmarkOutbox(b *testing.B) {
	for _, revising := range []bool{false, true} {
		b.Run(fmt.Sprint("revising=", revising), func(b *testing.B) {
			b.ReportAllocs()
			r := newOutboxRig(revising)
			keys, m := names(0, 1000), &note{key: "k"}
			for i := 0; i < b.N; i += 1000 {
				for _, key := range keys {
					r.stage(m, key, 1)
				}
				r.commit(b)
				r.settle(r.hand(1000), nil, r.now)
			}
		})
	}
}
