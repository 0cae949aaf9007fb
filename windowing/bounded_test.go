package windowing

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache"
	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// boundedOperators keep all rows of the test below.
var boundedOperators = map[string]func() Operator{
	"dedupe": func() Operator { return NewDedupe(DedupeConfig{Name: "d", Within: time.Hour, Codec: textCodec{}}) },
	"dedupe last": func() Operator {
		return NewDedupe(DedupeConfig{Name: "d", Within: time.Hour, KeepLast: true, Codec: textCodec{}})
	},
	"join inner": func() Operator { return NewJoin(JoinConfig{Name: "j", Upper: time.Hour, Codec: textCodec{}}) },
	"join left": func() Operator {
		return NewJoin(JoinConfig{Name: "j", Type: LeftJoin, Upper: time.Hour, Codec: textCodec{}})
	},
	"keyed": func() Operator {
		return NewKeyed(KeyedConfig{Name: "k", TTL: time.Hour, Evaluator: countingCode{ahead: watermark.Time(time.Hour)}})
	},
}

// TestBoundedMemory: with 150,000 keys in state an operator with a bound takes a
// fraction of the memory that it takes without one, and everything comes to its end.
func TestBoundedMemory(t *testing.T) {
	const keys, bound = 150_000, 4 << 20
	for name, fresh := range boundedOperators {
		t.Run(name, func(t *testing.T) {
			file, err := statecache.Open(filepath.Join(t.TempDir(), "state.db"), statecache.Options{NoSync: true})
			require.NoError(t, err)
			space, err := file.Lease("test")
			require.NoError(t, err)
			space.Bound(1 << 20)
			defer func() {
				require.NoError(t, space.Close())
				require.NoError(t, file.Close())
			}()
			before := heapBytes()
			op := fresh()
			op.(Bounded).Bound(bound, space)
			require.NoError(t, op.Load(space))
			rows, out, number, at := make([]Row, 1000), &Output{}, int64(0), watermark.Time(0)
			step := func(in Instant) {
				done := false
				for part := rows; !done; part = nil {
					out.Reset()
					if len(part) > 0 {
						op.Process(in, part, out)
					}
					done = op.Advance(in, PartLimit, out)
					require.NoError(t, out.err)
					saveTo(t, op, space)
					op.(Bounded).Committed()
				}
			}
			feed := func() {
				in := Instant{Late: at, Close: at}
				for i := range rows {
					number++
					at += watermark.Time(time.Hour / (2 * keys))
					rows[i] = Row{Time: at, Arrival: number, Message: benchRow, Key: agg.Int(number).AppendKey(nil), Args: []agg.Value{agg.Int(LeftSide)}}
				}
				step(in)
				require.Zero(t, out.tally.Late)
			}
			for range keys / len(rows) {
				feed()
			}
			took := heapBytes() - before
			t.Logf("%d bytes for each of %d keys", took/keys, keys)
			require.Less(t, took, int64(5*bound))
			require.Less(t, op.(Bounded).Held(), int64(bound+bound/2))
			for range 2 * keys / len(rows) { // the first ones come to their end
				feed()
			}
			require.Less(t, heapBytes()-before, int64(6*bound))
			rows = nil
			step(Instant{Late: at, Close: watermark.EndOfTime})
			requireProgressOnly(t, space)
		})
	}
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// brokenStore is a store that cannot be read any more.
type brokenStore struct {
	kv.Store
	broken bool
}

var errBroken = errors.New("a page is damaged")

func (r *brokenStore) Get(key []byte) ([]byte, error) {
	if r.broken {
		return nil, errBroken
	}
	return r.Store.Get(key)
}

func (r *brokenStore) Scan(from, to []byte, visit func(key, value []byte) error) error {
	if r.broken {
		return errBroken
	}
	return r.Store.Scan(from, to, visit)
}

// TestReadingBackFails: the chain says so, and the rows of the step do not come out.
func TestReadingBackFails(t *testing.T) {
	for name, fresh := range boundedOperators {
		store := &brokenStore{Store: kv.NewMemory()}
		chain, err := NewChain(Config{Memory: 1, Stages: []Stage{{Kind: "relay", Relay: true, Binding: passing{}}, {Name: "op", Kind: "kind", Operator: fresh(), Binding: passing{}}}})
		require.NoError(t, err)
		_, err = chain.Load(store)
		require.NoError(t, err)
		step := func(side int, at watermark.Time) Signal {
			row := keyed(at, 0, "a", side)
			chain.BeginRelayed([]Row{row}, Pair{Late: 0, Close: 0}, 0, watermark.Clock{})
			return chain.Run()
		}
		require.Equal(t, Done, step(LeftSide, 10), name)
		chain.Take()
		var b kv.Batch
		chain.Save(&b)
		require.NoError(t, store.Commit(&b))
		chain.Committed()
		store.broken = true
		require.Equal(t, Broken, step(RightSide, 11), name)
		require.ErrorIs(t, chain.Err(), errBroken, name)
		require.ErrorContains(t, chain.Err(), `state of kind "op"`, name)
		require.Empty(t, chain.Take(), name)
		require.False(t, chain.Whole(), name)
		require.Panics(t, func() { chain.Save(&b) }, name)
	}
}

// passing is a binding whose rows are prepared.
type passing struct{}

func (passing) Extract([]Row)                   {}
func (passing) Render(res *Result) Message      { return res.Message }
func (passing) Fail(m Message, _ error) Message { return m }

// TestOlderLayout: state that was written before records lay by segment is refused
// with the ways out.
func TestOlderLayout(t *testing.T) {
	d := NewDedupe(DedupeConfig{Name: "d", Key: "this.id", Within: time.Hour})
	stage := Stage{Name: "d", Kind: "watermark_dedupe", Operator: d, Binding: passing{}, Definition: d.Definition()}
	old := stage
	old.Definition = []Setting{{"key", "this.id"}, {"within", "1h0m0s"}}
	relay := Stage{Kind: "relay", Relay: true, Binding: passing{}}
	before, err := NewChain(Config{Stages: []Stage{relay, old}})
	require.NoError(t, err)
	store, b := kv.NewMemory(), kv.Batch{}
	before.SaveDefinition(&b)
	require.NoError(t, store.Commit(&b))
	now, err := NewChain(Config{Stages: []Stage{relay, stage}})
	require.NoError(t, err)
	_, err = now.Load(store)
	require.ErrorIs(t, err, ErrDefinition)
	require.EqualError(t, err, fmt.Sprintf("watermark_dedupe %q: %v: layout of the state was \"\", is \"2\"; put it back, give the operator a new name (such as `name: d_2`) to start with empty state, or delete the state file to start anew", "d", ErrDefinition))
}
