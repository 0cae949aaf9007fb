package windowing

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

func storedJoin() *Join {
	return NewJoin(JoinConfig{Name: "j", Type: FullJoin, Lower: -5, Upper: 5, Codec: textCodec{}})
}

func storedDedupe(last bool) *Dedupe {
	return NewDedupe(DedupeConfig{Name: "d", Within: 10, KeepLast: last, Codec: textCodec{}})
}

// keyed is a row with a key, of a side.
func keyed(at watermark.Time, arrival int64, key string, side int) Row {
	return Row{Time: at, Arrival: arrival, Key: agg.String(key).AppendKey(nil), Args: []agg.Value{agg.Int(int64(side))}, Message: fmt.Sprint("m", arrival)}
}

// storedPair is a store with a left row that has matched since it was saved, its
// partner and a row alone.
func storedPair(t testing.TB) kv.Store {
	j, out, store := storedJoin(), &Output{}, kv.NewMemory()
	j.Process(unsetInstant, []Row{keyed(10, 1, "a", LeftSide), keyed(10, 2, "b", LeftSide)}, out)
	saveTo(t, j, store)
	j.Process(unsetInstant, []Row{keyed(12, 3, "a", RightSide)}, out)
	require.True(t, j.Advance(Instant{Close: 11}, 10, out))
	saveTo(t, j, store)
	return store
}

// storedKeys is a store with two keys, of which one has had a duplicate.
func storedKeys(t testing.TB, last bool) kv.Store {
	d, out, store := storedDedupe(last), &Output{}, kv.NewMemory()
	d.Process(unsetInstant, []Row{keyed(10, 1, "a", 0), keyed(11, 2, "b", 0), keyed(12, 3, "a", 0)}, out)
	require.True(t, d.Advance(Instant{Close: 11}, 10, out))
	saveTo(t, d, store)
	return store
}

// TestJoinWritesOnlyWhatChanged: a match writes a few bytes and not the message
// again, a segment goes with its rows, and a quiet step writes nothing.
func TestJoinWritesOnlyWhatChanged(t *testing.T) {
	store := storedPair(t)
	require.Len(t, records(t, store), 5, "three rows, one mark, the progress")
	j := storedJoin()
	require.NoError(t, j.Load(store))
	require.Zero(t, saveTo(t, j, store))
	windows, keys := j.Sizes()
	require.Equal(t, []int{3, 2}, []int{windows, keys})

	out := &Output{}
	require.True(t, j.Advance(Instant{Close: 16}, 10, out))
	require.Equal(t, []string{"m2 with nothing at 10"}, joinLines(out))
	require.Equal(t, 2, saveTo(t, j, store), "a segment with two rows, and the progress")
	require.Len(t, records(t, store), 2)
}

// TestJoinForgetsUnsaved: rows that go before they were saved never reach the store.
func TestJoinForgetsUnsaved(t *testing.T) {
	j, out, store := storedJoin(), &Output{}, kv.NewMemory()
	j.Process(unsetInstant, []Row{keyed(10, 1, "a", LeftSide), keyed(11, 2, "a", RightSide)}, out)
	require.True(t, j.Advance(Instant{Close: 100}, 10, out))
	require.Equal(t, 1, saveTo(t, j, store))
	requireProgressOnly(t, store)
}

// TestJoinParts: a close stops after about as many results as it may have, however
// many rows go silently.
func TestJoinParts(t *testing.T) {
	j, out := storedJoin(), &Output{}
	for i := range int64(1000) {
		j.Process(unsetInstant, []Row{keyed(watermark.Time(i), i, fmt.Sprint(i), LeftSide)}, out)
	}
	in, parts := Instant{Close: watermark.EndOfTime}, 0
	for done := false; !done; parts++ {
		out.Reset()
		done = j.Advance(in, 10, out)
		require.LessOrEqual(t, len(out.items), 10)
	}
	require.Equal(t, 100, parts)
}

// TestOlderPair: what is older than a close that was reached is late, also after a
// restart, whatever pair is heard later.
func TestOlderPair(t *testing.T) {
	for name, test := range map[string]struct {
		fresh func() Operator
		store kv.Store
	}{
		"join":   {func() Operator { return storedJoin() }, storedPair(t)},
		"dedupe": {func() Operator { return storedDedupe(false) }, storedKeys(t, false)},
	} {
		op, out := test.fresh(), &Output{}
		require.NoError(t, op.Load(test.store), name)
		op.Process(Instant{Late: 5, Close: 5}, []Row{keyed(10, 9, "z", LeftSide), keyed(11, 10, "z", LeftSide)}, out)
		require.EqualValues(t, 1, out.tally.Late, name)
	}
}

func TestJoinAndDedupeLoadDamaged(t *testing.T) {
	for name, test := range map[string]struct {
		fresh   func() Operator
		store   kv.Store
		version byte
	}{
		"join":        {func() Operator { return storedJoin() }, storedPair(t), joinVersion},
		"dedupe":      {func() Operator { return storedDedupe(false) }, storedKeys(t, false), dedupeVersion},
		"dedupe last": {func() Operator { return storedDedupe(true) }, storedKeys(t, true), dedupeVersion},
	} {
		t.Run(name, func(t *testing.T) {
			all := records(t, test.store)
			for key, value := range all {
				load := func(key2 string, data []byte) error {
					return test.fresh().Load(storeOf(t, replaced(all, key, key2, data)))
				}
				require.NoError(t, load(key, value))
				_, payload, err := kv.Record(value)
				require.NoError(t, err)
				requireDamaged(t, load(key, value[:len(value)-1]))
				requireDamaged(t, load(key, append(bytes.Clone(value), 0)))
				requireDamaged(t, load(key, kv.AppendRecord(nil, test.version+1, payload)))
				if len(key) == 1 {
					continue
				}
				requireDamaged(t, load(key, kv.AppendRecord(nil, test.version, nil)))
				requireDamaged(t, load(key+"\x00", value))
				requireDamaged(t, load(key[:len(key)/2], value))
			}
		})
	}
}

// TestJoinLoadMarkAlone: a mark without its row is damage.
func TestJoinLoadMarkAlone(t *testing.T) {
	all := records(t, storedPair(t))
	for key := range all {
		if key[0] == joinTable && key[len(key)-1] == joinMatches {
			row := key[:len(key)-1]
			require.Contains(t, all, row)
			delete(all, row)
			break
		}
	}
	requireDamaged(t, storedJoin().Load(storeOf(t, all)))
}

func TestLoadReadErrors(t *testing.T) {
	store := kv.NewMemory()
	require.NoError(t, store.Close())
	require.ErrorIs(t, storedJoin().Load(store), kv.ErrClosed)
	require.ErrorIs(t, storedDedupe(true).Load(store), kv.ErrClosed)
}

// FuzzJoinLoad: a record with a valid checksum and any contents is read or refused,
// and what is read can be closed and leaves nothing.
func FuzzJoinLoad(f *testing.F) {
	fuzzLoad(f, storedPair(f), joinVersion, func() Operator { return storedJoin() })
}

func FuzzDedupeLoad(f *testing.F) {
	fuzzLoad(f, storedKeys(f, true), dedupeVersion, func() Operator { return storedDedupe(true) })
}

func fuzzLoad(f *testing.F, seed kv.Store, version byte, fresh func() Operator) {
	for key, value := range records(f, seed) {
		_, payload, err := kv.Record(value)
		require.NoError(f, err)
		f.Add([]byte(key), payload)
	}
	f.Fuzz(func(t *testing.T, key, payload []byte) {
		if len(key) == 0 {
			return
		}
		op, store := fresh(), storeOf(t, map[string][]byte{string(key): kv.AppendRecord(nil, version, payload)})
		if op.Load(store) != nil {
			return
		}
		if _, keys := op.(interface{ Sizes() (int, int) }).Sizes(); keys == 0 {
			return
		}
		require.Zero(t, saveTo(t, op, store))
		require.True(t, op.Advance(Instant{Close: watermark.EndOfTime}, 1<<30, &Output{}))
		saveTo(t, op, store)
		requireProgressOnly(t, store)
	})
}

// TestCompareSum: sums beyond 64 bits are compared as if there were more.
func TestCompareSum(t *testing.T) {
	for _, test := range []struct {
		t    watermark.Time
		d    time.Duration
		u    watermark.Time
		want int
	}{
		{0, 0, 0, 0}, {1, 1, 2, 0}, {1, 1, 3, -1}, {1, 1, 1, 1}, {-1, -1, -2, 0}, {-1, 1, 0, 0},
		{watermark.Max, 1, watermark.Max, 1}, {watermark.Max, 1 << 62, watermark.Min, 1},
		{watermark.Min, -1, watermark.Min, -1}, {watermark.Min, -1 << 62, watermark.Max, -1},
		{watermark.Max, -1, watermark.Max, -1}, {watermark.Min, 1, watermark.Min, 1},
		{watermark.Min, 1<<63 - 1, 0, 0}, {watermark.Min, 1<<63 - 1, 1, -1}, {watermark.Max, -1 << 63, -2, 0}, {watermark.Max, -1 << 63, -1, -1},
		{0, 1<<63 - 1, watermark.EndOfTime, 0}, {0, -1 << 63, watermark.Unset, 0},
	} {
		require.Equal(t, test.want, compareSum(test.t, test.d, test.u), "%d + %d and %d", int64(test.t), int64(test.d), int64(test.u))
	}
}

func TestJoinHold(t *testing.T) {
	for _, test := range []struct {
		kind         JoinType
		lower, upper time.Duration
		want         time.Duration
	}{
		{InnerJoin, -5, 7, 0}, {SemiJoin, -5, 7, 0}, {LeftJoin, -5, 7, 7}, {AntiJoin, -5, 7, 7}, {RightJoin, -5, 7, 5}, {FullJoin, -5, 7, 7},
		{FullJoin, -9, 7, 9}, {LeftJoin, -9, -2, 0}, {RightJoin, 2, 9, 0}, {FullJoin, 2, 9, 9}, {RightJoin, -1 << 63, 0, 1<<63 - 1},
	} {
		cfg := JoinConfig{Type: test.kind, Lower: test.lower, Upper: test.upper}
		require.Equal(t, test.want, cfg.Hold(), "%s from %d to %d", JoinTypes[test.kind], test.lower, test.upper)
	}
}

func TestJoinRefuses(t *testing.T) {
	for name, cfg := range map[string]JoinConfig{
		"no interval":          {Lower: 2, Upper: 1},
		"an excluded point":    {Lower: 1, Upper: 1, ExcludeUpper: true},
		"between nanoseconds":  {Lower: 1, Upper: 2, ExcludeLower: true, ExcludeUpper: true},
		"matches of a semi":    {Type: SemiJoin, MaxMatches: 1},
		"less than no matches": {MaxMatches: -1},
		"unknown":              {Type: AntiJoin + 1},
	} {
		require.Panics(t, func() { NewJoin(cfg) }, name)
	}
	require.Panics(t, func() { NewDedupe(DedupeConfig{KeepLast: true}) }, "nothing to keep it with")
	require.Panics(t, func() { NewDedupe(DedupeConfig{KeepLast: true, Within: -1, Codec: textCodec{}}) }, "within of rows")
}

// TestRowKeys: the arrivals of both sides make the key of a join's row; key, time
// and arrival that of a deduplication.
func TestRowKeys(t *testing.T) {
	j, out := storedJoin(), &Output{}
	j.Process(unsetInstant, []Row{keyed(10, 1, "a", LeftSide), keyed(12, 2, "a", RightSide), {Time: 3, Arrival: 3, Key: nullKey, Args: []agg.Value{agg.Int(RightSide)}, Message: "m"}}, out)
	require.Equal(t, `["j",["a"],1,2]`, out.items[0].result.RowKey)
	require.Equal(t, `["j",[null],null,3]`, out.items[1].result.RowKey)

	d := storedDedupe(false)
	out.Reset()
	d.Process(unsetInstant, []Row{keyed(10, 7, "a", 0)}, out)
	require.Equal(t, `["d",["a"],"1970-01-01T00:00:00.00000001Z",7]`, out.items[0].row.Mark.RowKey)
	require.EqualValues(t, 1, out.tally.Emitted)
}
