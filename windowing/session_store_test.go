package windowing

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// storedSessions is an operator whose records have everything: chunks, rows that
// are out and rows that are to come out.
func storedSessions(t testing.TB) *Session {
	return testSession(t, func(cfg *SessionConfig) {
		cfg.Mode, cfg.MaxDuration = Update, 1000
		cfg.Aggregates = parseAggregates(t, "count()", "collect(this.v)", "count_distinct(this.v)")
	})
}

func storedRecords(t testing.TB) map[string][]byte {
	s, out, store := storedSessions(t), &Output{}, kv.NewMemory()
	s.Process(unsetInstant, numbered(1, testRow(0, "a", 1), testRow(30, "a", 2), testRow(5, "b", 3)), out)
	require.True(t, s.Advance(Instant{Close: 10}, 10, out))
	saveTo(t, s, store)
	long := string(bytes.Repeat([]byte("x"), inlineLimit))
	for i := range 3 {
		row := testRow(7, "b", 0)
		row.Args = []agg.Value{agg.String(fmt.Sprint(i, long[:inlineLimit/(1+i)]))}
		s.Process(unsetInstant, numbered(int64(10+i), row), out)
		require.True(t, s.Advance(Instant{Close: 10}, 10, out))
		saveTo(t, s, store)
	}
	s.Process(unsetInstant, numbered(20, testRow(10, "a", 1), testRow(20, "a", 2)), out)
	require.False(t, s.Advance(Instant{Close: 10}, 1, out))
	saveTo(t, s, store)
	return records(t, store)
}

// TestSessionLoadDamaged: every damaged byte of every record is an error that
// names the record.
func TestSessionLoadDamaged(t *testing.T) {
	all := storedRecords(t)
	require.Equal(t, 6, len(all), "the progress, two sessions, three chunks")
	load := func(change map[string][]byte) error { return storedSessions(t).Load(storeOf(t, change)) }
	require.NoError(t, load(all))
	for key, value := range all {
		for i := 0; i < len(value); i += 1 + len(value)/100 {
			damaged := bytes.Clone(value)
			damaged[i] ^= 1
			requireDamaged(t, load(replaced(all, key, key, damaged)))
			requireDamaged(t, load(replaced(all, key, key, value[:i])))
		}
		requireDamaged(t, load(replaced(all, key, key, append(bytes.Clone(value), 0))))
		_, payload, err := kv.Record(value)
		require.NoError(t, err)
		requireDamaged(t, load(replaced(all, key, key, kv.AppendRecord(nil, sessionVersion+1, payload))))
		requireDamaged(t, load(replaced(all, key, key, kv.AppendRecord(nil, sessionVersion, append(bytes.Clone(payload), 0)))))
		requireDamaged(t, load(replaced(all, key, key, kv.AppendRecord(nil, sessionVersion, payload[:len(payload)-1]))))
		if key[0] != sessionTable {
			continue
		}
		for n := 1; n < len(key); n++ {
			requireDamaged(t, load(replaced(all, key, key[:n], value)))
		}
		requireDamaged(t, load(replaced(all, key, key+"\x00", value)))
	}
}

// TestSessionLoadMissing: a session without one of its chunks, and a chunk without
// its session, are damage.
func TestSessionLoadMissing(t *testing.T) {
	all := storedRecords(t)
	chunk := string(appendSessionKey(nil, sessionName{string(groupKey(agg.String("b"))), 3}))
	for _, key := range []string{chunk, chunk + "\x00\x00\x00\x00", chunk + "\x00\x00\x00\x01"} {
		require.Contains(t, all, key)
		less := replaced(all, key, key, nil)
		delete(less, key)
		requireDamaged(t, storedSessions(t).Load(storeOf(t, less)))
	}
}

// TestSessionLoadTouching: two sessions that would be one are damage.
func TestSessionLoadTouching(t *testing.T) {
	all := storedRecords(t)
	name := sessionName{string(groupKey(agg.String("a"))), 1}
	twice := replaced(all, "", string(appendSessionKey(nil, sessionName{name.group, 2})), all[string(appendSessionKey(nil, name))])
	requireDamaged(t, storedSessions(t).Load(storeOf(t, twice)))
}

// TestSessionGrowth: what a commit writes of a large state is what is new, and
// everything is written about twice at most; nothing is lost over restarts.
func TestSessionGrowth(t *testing.T) {
	const rows = 2000
	s, out, store := storedSessions(t), &Output{}, kv.NewMemory()
	written, last := 0, 0
	for i := range rows {
		s.Process(unsetInstant, numbered(int64(i), testRow(watermark.Time(i%500), "a", int64(i))), out)
		var b kv.Batch
		s.Save(&b)
		written += b.Size()
		last = b.Size()
		require.NoError(t, store.Commit(&b))
		if i%97 == 0 {
			s = storedSessions(t)
			require.NoError(t, s.Load(store))
		}
	}
	whole := 0
	for _, value := range records(t, store) {
		whole += len(value)
	}
	require.Less(t, last, 200)
	require.Less(t, written, 4*whole+rows*150, "%d bytes of state", whole)
	s = storedSessions(t)
	require.NoError(t, s.Load(store))
	require.True(t, s.Advance(unsetInstant, 10, out))
	values := out.items[len(out.items)-1].result.Values
	require.Equal(t, int64(rows), values[0].AsInt())
	require.Equal(t, int64(rows), values[2].AsInt())
	list := values[1].Any().([]any)
	require.Len(t, list, rows)
	require.Equal(t, "[0,500,1000,1500,1,501", values[1].AsString()[:22], "by event time, then arrival")
}

// TestSessionGrowthMerges: chunks of a session that another one takes in go.
func TestSessionGrowthMerges(t *testing.T) {
	s, out, store := storedSessions(t), &Output{}, kv.NewMemory()
	for i := range int64(500) {
		s.Process(unsetInstant, numbered(2*i, testRow(watermark.Time(i%10), "a", i), testRow(watermark.Time(100+i%10), "a", -i)), out)
		if i%10 == 0 {
			saveTo(t, s, store)
		}
	}
	for i := range watermark.Time(10) {
		s.Process(unsetInstant, numbered(2000+int64(i), testRow(10+10*i, "a", 7)), out)
	}
	saveTo(t, s, store)
	s = storedSessions(t)
	require.NoError(t, s.Load(store))
	require.Equal(t, 1, s.Windows())
	require.True(t, s.Advance(unsetInstant, 10, out))
	require.Equal(t, int64(1010), out.items[0].result.Values[0].AsInt())
	require.Equal(t, int64(999), out.items[0].result.Values[2].AsInt())
	require.True(t, s.Advance(Instant{Close: watermark.EndOfTime}, 10, out))
	saveTo(t, s, store)
	requireProgressOnly(t, store)
}

// FuzzSessionLoad: a record with a valid checksum and any contents is read or
// refused, and what is read is written the same again.
func FuzzSessionLoad(f *testing.F) {
	for key, value := range storedRecords(f) {
		_, payload, err := kv.Record(value)
		require.NoError(f, err)
		f.Add([]byte(key), payload)
	}
	f.Fuzz(func(t *testing.T, key, payload []byte) {
		if len(key) == 0 {
			return
		}
		s := storedSessions(t)
		if s.Load(storeOf(t, map[string][]byte{string(key): kv.AppendRecord(nil, sessionVersion, payload)})) != nil || s.Groups() == 0 {
			return
		}
		require.Equal(t, 1, s.Windows())
		s.dirtied(s.closings[0].it)
		again, out := kv.NewMemory(), &Output{}
		saveTo(t, s, again)
		require.NoError(t, storedSessions(t).Load(again))
		require.Contains(t, records(t, again), string(key))
		require.True(t, s.Advance(Instant{Close: watermark.EndOfTime}, 1<<30, out))
		saveTo(t, s, again)
		requireProgressOnly(t, again)
	})
}

// TestSessionLoadReadError passes errors of the store on.
func TestSessionLoadReadError(t *testing.T) {
	store := kv.NewMemory()
	require.NoError(t, store.Close())
	require.ErrorIs(t, testSession(t, nil).Load(store), kv.ErrClosed)
}

// TestSessionLoadsVersion1: an earlier build did not say of a row whether it was
// taken back.
func TestSessionLoadsVersion1(t *testing.T) {
	s := storedSessions(t)
	s.Process(unsetInstant, numbered(1, testRow(0, "a", 1)), &Output{})
	it := s.closings[0].it
	b := kv.AppendVarint(kv.AppendVarint(nil, 0), 10)
	b = kv.AppendUvarint(kv.AppendBool(b, true), 2)
	for revision, end := range []int64{8, 10} {
		b = kv.AppendVarint(kv.AppendVarint(kv.AppendVarint(b, 0), end), int64(revision+1))
	}
	b = kv.AppendUvarint(b, 0)
	for _, acc := range it.accumulators {
		b = acc.Append(b)
	}
	key := string(appendSessionKey(nil, sessionName{it.group.key, 1}))
	loaded, out := storedSessions(t), &Output{}
	require.NoError(t, loaded.Load(storeOf(t, map[string][]byte{key: kv.AppendRecord(nil, 1, b)})))
	require.True(t, loaded.Advance(unsetInstant, 10, out))
	require.Equal(t, []string{`[0,8) "a" delete 2`, `[0,10) "a" 1 [1] 1 early 3`}, sessionLines(out))
}
