package windowing

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// records gives every record of a store.
func records(t testing.TB, store kv.Reader) map[string][]byte {
	all := map[string][]byte{}
	require.NoError(t, store.Scan(nil, nil, func(key, value []byte) error {
		all[string(key)] = bytes.Clone(value)
		return nil
	}))
	return all
}

func storeOf(t testing.TB, all map[string][]byte) kv.Store {
	store := kv.NewMemory()
	var b kv.Batch
	for k, v := range all {
		b.Put([]byte(k), v)
	}
	require.NoError(t, store.Commit(&b))
	return store
}

// partlyClosed gives the state of a window operator with a cursor and several
// windows.
func partlyClosed(t testing.TB) map[string][]byte {
	w, out, store := testWindow(t), &Output{}, kv.NewMemory()
	in := Instant{Late: watermark.Unset, Close: watermark.Unset}
	w.Process(in, []Row{testRow(1, "a", 1), testRow(2, "b", 2), testRow(3, "c", 3), testRow(-11, "a", 4)}, out)
	saveTo(t, w, store)
	require.False(t, w.Advance(Instant{Late: watermark.Unset, Close: 10}, 3, out))
	saveTo(t, w, store)
	return records(t, store)
}

// TestWindowLoadDamaged: every damaged byte of every record is an error that
// names the record.
func TestWindowLoadDamaged(t *testing.T) {
	all := partlyClosed(t)
	require.Len(t, all, 4)
	load := func(change map[string][]byte) error { return testWindow(t).Load(storeOf(t, change)) }
	require.NoError(t, load(all))
	for key, value := range all {
		for i := range value {
			damaged := bytes.Clone(value)
			damaged[i] ^= 1
			requireDamaged(t, load(replaced(all, key, key, damaged)))
			requireDamaged(t, load(replaced(all, key, key, value[:i])))
		}
		requireDamaged(t, load(replaced(all, key, key, append(bytes.Clone(value), 0))))
		version, payload, err := kv.Record(value)
		require.NoError(t, err)
		requireDamaged(t, load(replaced(all, key, key, kv.AppendRecord(nil, progressVersion+1, payload))))
		requireDamaged(t, load(replaced(all, key, key, kv.AppendRecord(nil, version, append(bytes.Clone(payload), 0)))))
		requireDamaged(t, load(replaced(all, key, key, kv.AppendRecord(nil, version, payload[:len(payload)-1]))))
		if key[0] != groupTable {
			continue
		}
		for n := 1; n < len(key); n++ {
			requireDamaged(t, load(replaced(all, key, key[:n], value)))
		}
		requireDamaged(t, load(replaced(all, key, key+key[17:], value)))
		shifted := []byte(key)
		shifted[16]++ // a start that is not on the grid
		requireDamaged(t, load(replaced(all, key, string(shifted), value)))
	}
}

func replaced(all map[string][]byte, key, as string, value []byte) map[string][]byte {
	changed := map[string][]byte{}
	for k, v := range all {
		if k != key {
			changed[k] = v
		}
	}
	changed[as] = value
	return changed
}

func requireDamaged(t testing.TB, err error) {
	t.Helper()
	require.Error(t, err)
	require.ErrorContains(t, err, "record ")
	require.True(t, errors.Is(err, kv.ErrCorrupt) || errors.Is(err, agg.ErrState) || errors.Is(err, agg.ErrKey), err)
}

// Days that began by other rules are refused with the zone and what to do about it.
func TestWindowLoadTellsOfTimeZoneRules(t *testing.T) {
	window := func(zone *time.Location) *Window {
		day, _, err := ParseCalendarSize("1d")
		require.NoError(t, err)
		calendar, err := NewCalendar(day, day, 0, zone)
		require.NoError(t, err)
		return NewWindow(WindowConfig{Name: "w", Assigner: calendar, GroupBy: []GroupField{{Name: "k", Expr: "this.k"}}, Aggregates: parseAggregates(t, "sum(this.v)")})
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	then, store := window(time.FixedZone("Europe/Berlin", 2*60*60)), kv.NewMemory()
	then.Process(Instant{Late: watermark.Unset, Close: watermark.Unset}, []Row{testRow(at(t, "2026-01-10T12:00:00Z"), "a", 1)}, &Output{})
	saveTo(t, then, store)
	err = window(berlin).Load(store)
	require.ErrorIs(t, err, kv.ErrCorrupt)
	require.ErrorContains(t, err, `2026-01-09T22:00:00Z to 2026-01-10T22:00:00Z is not a slice of these windows; if the state was written under other rules of time zone "Europe/Berlin"`)
	require.NoError(t, window(time.FixedZone("Europe/Berlin", 2*60*60)).Load(store))
}

// FuzzWindowLoad: a group record with a valid checksum and any contents is read
// or refused, and what is read is written the same again.
func FuzzWindowLoad(f *testing.F) {
	for key, value := range partlyClosed(f) {
		_, payload, err := kv.Record(value)
		require.NoError(f, err)
		f.Add([]byte(key), payload)
	}
	f.Fuzz(func(t *testing.T, key, payload []byte) {
		if len(key) == 0 {
			return
		}
		store := storeOf(t, map[string][]byte{string(key): kv.AppendRecord(nil, windowVersion, payload)})
		w := testWindow(t)
		if w.Load(store) != nil || w.Groups() == 0 {
			return
		}
		require.Equal(t, 1, w.Groups())
		s := w.state.ordered[0]
		w.state.touch(s, 0)
		again := kv.NewMemory()
		saveTo(t, w, again)
		require.NoError(t, testWindow(t).Load(again))
		for k := range records(t, again) {
			require.Equal(t, string(key), k)
		}
		out := &Output{}
		require.True(t, w.Advance(Instant{Close: watermark.EndOfTime}, 10, out))
		saveTo(t, w, again)
		requireProgressOnly(t, again)
	})
}

// TestWindowLoadReadError passes errors of the store on.
func TestWindowLoadReadError(t *testing.T) {
	store := kv.NewMemory()
	require.NoError(t, store.Close())
	require.ErrorIs(t, testWindow(t).Load(store), kv.ErrClosed)
}
