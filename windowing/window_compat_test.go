package windowing

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// TestWindowLoadsProgressOfVersion1: a close that an earlier build had begun goes
// on behind the last group that it handed out.
func TestWindowLoadsProgressOfVersion1(t *testing.T) {
	w, out, store := testWindow(t), &Output{}, kv.NewMemory()
	in := Instant{Late: watermark.Unset}
	w.Process(in, []Row{testRow(1, "a", 1), testRow(1, "b", 1), testRow(1, "c", 1), testRow(11, "a", 1)}, out)
	saveTo(t, w, store)
	var payload []byte
	payload = kv.AppendVarint(payload, 20)
	payload = kv.AppendBool(payload, true)
	payload = kv.AppendVarint(kv.AppendVarint(payload, 10), 0)
	payload = kv.AppendBlob(payload, testRow(0, "b", 0).Key)
	all := records(t, store)
	all[string([]byte{progressTable})] = kv.AppendRecord(nil, 1, payload)

	w = testWindow(t)
	require.NoError(t, w.Load(storeOf(t, all)))
	require.True(t, w.Advance(Instant{Late: 20, Close: 20}, 10, out))
	require.Equal(t, []string{`[0,10) "c" 1 1`, `[10,20) "a" 1 1`}, lines(out))
}

// revisingWindow allows lateness on windows of 10 ns that start every 5.
func revisingWindow(t testing.TB) *Window {
	grid, err := NewSliding(10, 5, 0)
	require.NoError(t, err)
	w := testWindow(t)
	cfg := w.config
	cfg.Assigner, cfg.Lateness = grid, 100*time.Nanosecond
	return NewWindow(cfg)
}

// TestWindowLoadDamagedRevisions: every damaged byte of a revision is an error that
// names the record.
func TestWindowLoadDamagedRevisions(t *testing.T) {
	w, out, store := revisingWindow(t), &Output{}, kv.NewMemory()
	w.Process(Instant{Late: watermark.Unset}, []Row{testRow(1, "a", 1)}, out)
	require.True(t, w.Advance(Instant{Late: watermark.Unset, Close: 20}, 10, out))
	w.Process(Instant{Late: 20}, []Row{testRow(2, "a", 1), testRow(2, "b", 1)}, out)
	require.False(t, w.Advance(Instant{Late: 20, Close: 20}, 1, out), "the others wait")
	saveTo(t, w, store)
	all := records(t, store)
	load := func(change map[string][]byte) error { return revisingWindow(t).Load(storeOf(t, change)) }
	require.NoError(t, load(all))
	revisions := 0
	for key, value := range all {
		if key[0] != revisionTag {
			continue
		}
		revisions++
		for i := range value {
			damaged := bytes.Clone(value)
			damaged[i] ^= 1
			requireDamaged(t, load(replaced(all, key, key, damaged)))
			requireDamaged(t, load(replaced(all, key, key, value[:i])))
		}
		_, payload, err := kv.Record(value)
		require.NoError(t, err)
		requireDamaged(t, load(replaced(all, key, key, kv.AppendRecord(nil, revisionVersion+1, payload))))
		requireDamaged(t, load(replaced(all, key, key, kv.AppendRecord(nil, revisionVersion, append(bytes.Clone(payload), 0)))))
		shifted := []byte(key)
		shifted[8]++ // an end that is not on the grid
		requireDamaged(t, load(replaced(all, key, string(shifted), value)))
		for n := 1; n < len(key); n++ {
			requireDamaged(t, load(replaced(all, key, key[:n], value)))
		}
	}
	require.Equal(t, 4, revisions, "two groups in two windows")
	for key := range all { // what waits needs its group
		if key[0] == groupTable {
			without := replaced(all, key, key, nil)
			delete(without, key)
			requireDamaged(t, load(without))
		}
	}
}

// TestWindowLoadsRevisionOfVersion1: an earlier build knew no rows that are taken
// back, so that what had a revision was out.
func TestWindowLoadsRevisionOfVersion1(t *testing.T) {
	for last, out := range map[int64]bool{0: false, 3: true} {
		payload := kv.AppendBool(kv.AppendVarint(nil, last), true)
		row, err := readRevision(kv.AppendRecord(nil, 1, payload))
		require.NoError(t, err)
		require.Equal(t, revision{last: last, out: out, waits: true}, row)
	}
	for _, damaged := range [][]byte{
		kv.AppendBool(kv.AppendVarint(nil, -1), false),
		kv.AppendBool(kv.AppendBool(kv.AppendBool(kv.AppendVarint(nil, 0), false), false), true),
	} {
		_, err := readRevision(kv.AppendRecord(nil, revisionVersion, damaged))
		require.ErrorIs(t, err, kv.ErrCorrupt)
	}
}
