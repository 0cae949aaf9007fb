package kv

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAfterAndPrefixEnd(t *testing.T) {
	require.Equal(t, []byte{0}, After(nil))
	require.Equal(t, []byte("a\x00"), After([]byte("a")))
	require.Nil(t, PrefixEnd(nil))
	require.Nil(t, PrefixEnd([]byte{0xff, 0xff}))
	require.Equal(t, []byte("b"), PrefixEnd([]byte("a")))
	require.Equal(t, []byte("b"), PrefixEnd([]byte("a\xff\xff")))
	require.Equal(t, []byte{0xff}, PrefixEnd([]byte{0xfe, 0xff}))
	prefix := []byte("a")
	PrefixEnd(prefix)
	require.Equal(t, "a", string(prefix), "the argument stays")
}

// ops renders a batch, one operation a string.
func ops(t *testing.T, data []byte) (out []string, err error) {
	t.Helper()
	err = ReadBatch(data,
		func(k, v []byte) { out = append(out, "put "+string(k)+"="+string(v)) },
		func(from, to []byte) { out = append(out, "del "+string(from)+".."+string(to)) })
	return out, err
}

func TestBatch(t *testing.T) {
	var b Batch
	require.Zero(t, b.Len())
	b.Put(nil, nil)
	b.Put([]byte("k"), []byte("v"))
	b.Delete([]byte("k"), []byte("k\x00"))
	b.Delete(nil, []byte{0})
	b.Delete([]byte("a"), []byte("b"))
	b.Delete([]byte("a"), nil)
	b.Delete([]byte("a"), []byte{})
	b.Delete(nil, nil)
	require.Equal(t, 8, b.Len())
	require.Equal(t, len(b.Bytes()), b.Size())
	b.Delete([]byte("b"), []byte("a"))
	b.Delete([]byte("a"), []byte("a"))
	require.Equal(t, 8, b.Len(), "ranges that hold nothing are dropped")
	got, err := ops(t, b.Bytes())
	require.NoError(t, err)
	require.Equal(t, []string{"put =", "put k=v", "del k..k\x00", "del ..\x00", "del a..b", "del a..", "del a..", "del .."}, got)

	b.Reset()
	require.Zero(t, b.Len())
	require.Zero(t, b.Size())
	got, err = ops(t, b.Bytes())
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestBatchCopiesItsArguments(t *testing.T) {
	var b Batch
	key, value := []byte("k"), []byte("v")
	b.Put(key, value)
	key[0], value[0] = 'x', 'x'
	got, err := ops(t, b.Bytes())
	require.NoError(t, err)
	require.Equal(t, []string{"put k=v"}, got)
}

func TestReadBatchRefusesDamage(t *testing.T) {
	var b Batch
	b.Put([]byte("key"), []byte("value"))
	whole := b.Bytes()
	for cut := 1; cut < len(whole); cut++ {
		_, err := ops(t, whole[:cut])
		require.ErrorIs(t, err, ErrCorrupt, "cut at %d", cut)
	}
	_, err := ops(t, append(bytes.Clone(whole), 0))
	require.ErrorIs(t, err, ErrCorrupt)
	for _, bad := range []string{"\x00", "\x04\x00\x00", "\x03\x00", "\x03\x01a", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		_, err := ops(t, []byte(bad))
		require.ErrorIs(t, err, ErrCorrupt, "%q", bad)
	}
}

func TestSubWriterAndSubReader(t *testing.T) {
	s := NewMemory()
	var b Batch
	w := SubWriter(&b, "t/")
	inner := SubWriter(w, "x")
	b.Put([]byte("s"), nil)
	b.Put([]byte("t0"), []byte("outside"))
	w.Put(nil, []byte("empty"))
	w.Put([]byte("a"), []byte("1"))
	inner.Put([]byte("b"), []byte("2"))
	require.NoError(t, s.Commit(&b))

	r := SubReader(s, "t/")
	require.Equal(t, []string{"=empty", "a=1", "xb=2"}, entries(t, r, nil, nil))
	require.Equal(t, []string{"a=1"}, entries(t, r, []byte("a"), []byte("b")))
	require.Equal(t, []string{"b=2"}, entries(t, SubReader(r, "x"), nil, nil))
	v, err := SubReader(r, "x").Get([]byte("b"))
	require.NoError(t, err)
	require.Equal(t, "2", string(v))

	b.Reset()
	w.Delete([]byte("a"), nil)
	require.NoError(t, s.Commit(&b))
	require.Equal(t, []string{"s=", "t/=empty", "t0=outside"}, entries(t, s, nil, nil), "the end of a table is no further than its prefix")
	b.Reset()
	SubWriter(&b, "\xff").Put([]byte("z"), nil)
	SubWriter(&b, "\xff").Delete(nil, nil)
	require.NoError(t, s.Commit(&b))
	require.Len(t, entries(t, s, nil, nil), 3)
}

// entries renders a scan.
func entries(t *testing.T, r Reader, from, to []byte) (out []string) {
	t.Helper()
	require.NoError(t, r.Scan(from, to, func(k, v []byte) error {
		out = append(out, string(k)+"="+string(v))
		return nil
	}))
	return out
}
