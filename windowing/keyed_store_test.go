package windowing

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// countingCode counts rows and sets a timer for each, by the name that the row has.
type countingCode struct{ ahead watermark.Time }

func (c countingCode) Event(call KeyedCall, row *Row) (e KeyedEffect, err error) {
	e.Set, e.State = true, call.State+"1"
	e.Timers = []KeyedTimer{{Name: fmt.Sprint(row.Message), At: row.Time + c.ahead}}
	return e, nil
}

func (countingCode) Timer(call KeyedCall, timer KeyedTimer) (e KeyedEffect, err error) {
	return KeyedEffect{Set: true, Rows: []Message{timer.Name + " " + call.State}}, nil
}

func storedKeyed() *Keyed {
	return NewKeyed(KeyedConfig{Name: "k", TTL: 1000, Evaluator: countingCode{ahead: 10}})
}

// storedStates is a store with two keys, of which one has two timers.
func storedStates(t testing.TB) kv.Store {
	k, out, store := storedKeyed(), &Output{}, kv.NewMemory()
	k.Process(unsetInstant, []Row{keyed(10, 1, "a", 0), keyed(11, 2, "b", 0), keyed(12, 3, "a", 0)}, out)
	require.True(t, k.Advance(Instant{Close: 11}, 10, out))
	saveTo(t, k, store)
	return store
}

// TestKeyedWritesOnlyWhatChanged: a row writes the record of its key, a quiet step
// nothing; keys that go, and come again, before they are saved leave no record.
func TestKeyedWritesOnlyWhatChanged(t *testing.T) {
	store := storedStates(t)
	require.Len(t, records(t, store), 5, "two keys with their places in the index, and the progress")
	k, out := storedKeyed(), &Output{}
	require.NoError(t, k.Load(store))
	require.Zero(t, saveTo(t, k, store))
	timers, keys := k.Sizes()
	require.Equal(t, []int{3, 2}, []int{timers, keys})

	k.Process(unsetInstant, []Row{keyed(20, 4, "b", 0)}, out)
	require.Equal(t, 2, saveTo(t, k, store), "a key and the progress")

	require.True(t, k.Advance(Instant{Close: 20}, 10, out))
	require.Equal(t, []string{"m1 11 at 20 of \"a\" number 2, 0"}, keyedLines(out))
	k.Process(Instant{Late: 20, Close: 20}, []Row{keyed(20, 5, "a", 0)}, out)
	saveTo(t, k, store)
	again := storedKeyed()
	require.NoError(t, again.Load(store))
	out.Reset()
	require.True(t, again.Advance(Instant{Late: 20, Close: 30}, 10, out))
	require.Equal(t, []string{"m2 11 at 21 of \"b\" number 4, 0", "m5 1 at 30 of \"a\" number 10, 0"}, keyedLines(out))
	saveTo(t, again, store)
	requireProgressOnly(t, store)
}

// TestKeyedParts: a close stops after about as many results as it may have, however
// many keys go silently.
func TestKeyedParts(t *testing.T) {
	k, out := storedKeyed(), &Output{}
	for i := range int64(1000) {
		k.Process(unsetInstant, []Row{keyed(watermark.Time(i), i, fmt.Sprint(i), 0)}, out)
	}
	in, parts := Instant{Close: watermark.EndOfTime}, 0
	for done := false; !done; parts++ {
		out.Reset()
		done = k.Advance(in, 10, out)
		require.LessOrEqual(t, len(out.items), 10)
	}
	require.Equal(t, 100, parts)
}

// TestKeyedAtTheEndsOfTime: what would be dropped beyond the largest event time
// stays until the end of time.
func TestKeyedAtTheEndsOfTime(t *testing.T) {
	k, out := NewKeyed(KeyedConfig{Name: "k", TTL: math.MaxInt64, Evaluator: countingCode{}}), &Output{}
	k.Process(unsetInstant, []Row{keyed(watermark.Min, 1, "a", 0), keyed(1, 2, "b", 0), keyed(watermark.Max, 3, "c", 0)}, out)
	require.True(t, k.Advance(Instant{Late: watermark.Unset, Close: watermark.Unset}, 10, out))
	require.Empty(t, keyedLines(out))
	require.True(t, k.Advance(Instant{Late: watermark.Unset, Close: watermark.Min}, 10, out))
	require.Len(t, keyedLines(out), 1)
	require.True(t, k.Advance(Instant{Late: watermark.Min, Close: watermark.Max}, 10, out))
	require.Len(t, keyedLines(out), 3)
	_, keys := k.Sizes()
	require.Zero(t, keys)
}

func TestKeyedOlderPair(t *testing.T) {
	k, out := storedKeyed(), &Output{}
	require.NoError(t, k.Load(storedStates(t)))
	k.Process(Instant{Late: 5, Close: 5}, []Row{keyed(10, 9, "z", 0), keyed(11, 10, "z", 0)}, out)
	require.EqualValues(t, 1, out.tally.Late)
}

func TestKeyedLoadDamaged(t *testing.T) {
	all := records(t, storedStates(t))
	for key, value := range all {
		load := func(key2 string, data []byte) error {
			return storedKeyed().Load(storeOf(t, replaced(all, key, key2, data)))
		}
		require.NoError(t, load(key, value))
		_, payload, err := kv.Record(value)
		require.NoError(t, err)
		requireDamaged(t, load(key, value[:len(value)-1]))
		requireDamaged(t, load(key, append(bytes.Clone(value), 0)))
		requireDamaged(t, load(key, kv.AppendRecord(nil, keyedVersion+1, payload)))
		if key[0] == keyedIndex {
			requireDamaged(t, load(key, kv.AppendRecord(nil, keyedVersion, []byte{0})))
			requireDamaged(t, load(key+"\x00", value))
			requireDamaged(t, load(key[:len(key)/2], value))
			continue
		}
		requireDamaged(t, load(key, kv.AppendRecord(nil, keyedVersion, payload[:len(payload)-1])))
		if len(key) == 1 {
			requireDamaged(t, load(key, kv.AppendRecord(nil, keyedVersion, append(bytes.Clone(payload), 0))))
			requireDamaged(t, load(key, kv.AppendRecord(nil, keyedVersion, []byte{0, 0}))) // timers have numbers that were never given
			continue
		}
		requireDamaged(t, load(key, kv.AppendRecord(nil, keyedVersion, nil)))
		requireDamaged(t, load(key+"\x00", value))
		requireDamaged(t, load(key[:len(key)/2], value))
		for _, tail := range [][]byte{{0}, {1, 'x', 2, 2, 2}, {1, 'x', 0, 2, 0}, {2, 'm', '1', 0, 2, 2, 2, 'm', '1', 0, 2, 2}} {
			requireDamaged(t, load(key, kv.AppendRecord(nil, keyedVersion, append(bytes.Clone(payload), tail...))))
		}
	}
}

// FuzzKeyedLoad: any bytes are either a state that can go on or an error.
func FuzzKeyedLoad(f *testing.F) {
	for key, value := range records(f, storedStates(f)) {
		if len(key) > 1 {
			_, payload, _ := kv.Record(value)
			f.Add([]byte(key[1:]), payload)
		}
	}
	f.Fuzz(func(t *testing.T, key, payload []byte) {
		store := kv.NewMemory()
		var b kv.Batch
		b.Put([]byte{progressTable}, kv.AppendRecord(nil, keyedVersion, kv.AppendVarint(kv.AppendVarint(nil, 5), 1000)))
		b.Put(append([]byte{keyedTable}, key...), kv.AppendRecord(nil, keyedVersion, payload))
		require.NoError(t, store.Commit(&b))
		k := storedKeyed()
		if k.Load(store) != nil {
			return
		}
		_, keys := k.Sizes()
		require.Equal(t, 1, keys)
		out := &Output{}
		require.True(t, k.Advance(Instant{Late: 5, Close: watermark.EndOfTime}, math.MaxInt32, out))
		saveTo(t, k, store)
		requireProgressOnly(t, store)
	})
}

// BenchmarkKeyed reports the time per row that puts off the timer of its key, with
// keys keys in state, saved after each batch. The code does next to nothing.
func BenchmarkKeyed(b *testing.B) {
	for _, keys := range []int{1000, 1_000_000} {
		for _, batch := range []int{1, 1000} {
			b.Run(fmt.Sprintf("keys=%d/batch=%d", keys, batch), func(b *testing.B) {
				k := NewKeyed(KeyedConfig{Name: "k", Evaluator: quietCode{ahead: watermark.Time(2 * keys)}})
				n := 0
				benchOperator(b, k, keys, batch, func(row *Row) {
					n++
					row.Key = agg.Int(int64(n * 7919 % keys)).AppendKey(row.Key[:0])
				})
			})
		}
	}
}

// quietCode says which keys fell silent.
type quietCode struct{ ahead watermark.Time }

func (c quietCode) Event(_ KeyedCall, row *Row) (KeyedEffect, error) {
	return KeyedEffect{Set: true, State: `{"n":1}`, Timers: []KeyedTimer{{Name: "quiet", At: row.Time + c.ahead}}}, nil
}

func (quietCode) Timer(_ KeyedCall, timer KeyedTimer) (KeyedEffect, error) {
	return KeyedEffect{Set: true, Rows: []Message{timer.Name}}, nil
}

// TestKeyedHeapRemovesAnywhere: timers leave the heap from the middle in any order.
func TestKeyedHeapRemovesAnywhere(t *testing.T) {
	k, out := NewKeyed(KeyedConfig{Name: "k", Evaluator: countingCode{ahead: watermark.Time(time.Hour)}}), &Output{}
	for i := range int64(200) {
		k.Process(unsetInstant, []Row{keyed(watermark.Time(i*37%200), i, fmt.Sprint(i%20), 0)}, out)
	}
	for i := range 20 {
		k.change(k.keys[string(agg.String(fmt.Sprint(i*7%20)).AppendKey(nil))], &KeyedEffect{Set: true})
		for at, e := range k.event {
			require.Equal(t, at, e.timer.place)
			require.False(t, at > 0 && e.before(&k.event[(at-1)/2]), "out of order at %d", at)
		}
	}
	require.Empty(t, k.event)
}
