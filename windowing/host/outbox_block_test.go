package host

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// Rows share records, which take a bounded number of rows and of bytes.
func TestOutboxBlocks(t *testing.T) {
	r := newOutboxRig(false)
	r.emit(t, 1, names(0, blockRows)...)
	require.Equal(t, 1, r.records(t))
	r.emit(t, 1, names(blockRows, 2*blockRows+1)...)
	require.Equal(t, 3, r.records(t))
	large := strings.Repeat("x", blockBytes-1)
	r.emit(t, 1, large, large, large, "small")
	require.Equal(t, 3+4, r.records(t), "a row that is larger than a block has one of its own")
	want := append(names(0, 2*blockRows+1), large, large, large, "small")
	require.Equal(t, len(want), r.stored(t))
	r.restart(t)
	require.Equal(t, want, keysOf(r.take(len(want), r.now)))
	for i, row := range r.ready {
		require.EqualValues(t, i+1, row.seq)
	}
}

// A record of which a part is delivered is written again without it, as often as
// that happens.
func TestOutboxRewritesBlocks(t *testing.T) {
	r := newOutboxRig(true)
	r.emit(t, 1, names(0, 10)...)
	for left := 10; left > 0; left-- {
		require.Equal(t, 1, r.records(t))
		require.Equal(t, left, r.stored(t))
		if left%3 == 0 {
			r.restart(t)
		}
		if left%2 == 0 {
			g := r.hand(1)
			r.settle(g, []int{0}, r.now) // and behind the others
			r.now = r.now.Add(lastBackoff)
			require.Equal(t, g.rows, r.take(1, r.now).rows)
		}
		r.settle(r.hand(1), nil, r.now)
		r.commit(t)
	}
	require.Zero(t, r.records(t))
	require.True(t, r.empty())
}

// An outbox that an earlier build wrote, a record for each row, is delivered.
func TestOutboxOfSingleRows(t *testing.T) {
	r := newOutboxRig(true)
	var b kv.Batch
	for i, key := range names(0, 5) {
		payload := kv.AppendVarint(kv.AppendBlob(nil, `["`+key+`"]`), 3)
		put(&b, outKey(uint64(7+2*i)), noteEdge{}.Append(payload, &note{key: key}))
	}
	require.NoError(t, r.store.Commit(&b))
	r.restart(t)
	r.emit(t, 4, "0001", "new")
	require.EqualValues(t, 16, r.ready[5].seq)
	g := r.hand(7)
	require.Equal(t, append(names(0, 5), "0001", "new"), keysOf(g))
	require.EqualValues(t, 3, g.rows[0].revision)
	r.settle(g, []int{0, 1}, r.now) // the second is superseded
	r.commit(t)
	require.Equal(t, 1, r.stored(t))
	r.restart(t)
	r.settle(r.hand(7), nil, r.now)
	r.commit(t)
	require.Zero(t, r.records(t))
}

// What a block says is checked where its checksum is right.
func TestOutboxBlockDamage(t *testing.T) {
	row := plainPacker{noteEdge{}}.Pack(nil, Parcel{Message: &note{key: "k"}}, nil)
	whole := kv.AppendBlob([]byte{0}, row)
	for name, payload := range map[string][]byte{
		"empty":             {},
		"cut":               whole[:len(whole)-1],
		"trailing byte":     append(slices.Clone(whole), 0),
		"number out of 64":  append(kv.AppendUvarint(nil, math.MaxUint64-4), whole[1:]...),
		"last number of 64": append(kv.AppendUvarint(nil, math.MaxUint64-5), whole[1:]...),
		"trailing in a row": kv.AppendBlob([]byte{0}, append(slices.Clone(row), 0)),
	} {
		store := kv.NewMemory()
		var b kv.Batch
		b.Put(outKey(5), kv.AppendRecord(nil, blockVersion, payload))
		require.NoError(t, store.Commit(&b))
		require.ErrorIs(t, newOutbox(noteEdge{}, false).load(store), kv.ErrCorrupt, name)
	}
	for name, second := range map[string][]byte{
		"a row twice":       kv.AppendRecord(nil, blockVersion, whole),
		"an unknown record": kv.AppendRecord(nil, blockVersion+1, whole),
	} {
		store := kv.NewMemory()
		var b kv.Batch
		b.Put(outKey(5), kv.AppendRecord(nil, blockVersion, append(slices.Clone(whole), whole...)))
		b.Put(outKey(6), second)
		require.NoError(t, store.Commit(&b))
		require.Error(t, newOutbox(noteEdge{}, false).load(store), name)
	}
}
