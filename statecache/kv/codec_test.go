package kv

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ordering checks one kind of key part over values in ascending order: the
// encodings ascend, none is a prefix of another, each comes back with the
// rest of the key untouched.
func ordering[T any](t *testing.T, ascending []T, enc func([]byte, T) []byte, dec func([]byte) (T, []byte, error)) {
	t.Helper()
	for i, v := range ascending {
		key := enc([]byte("before"), v)[len("before"):]
		back, rest, err := dec(append(bytes.Clone(key), "rest"...))
		require.NoError(t, err)
		require.Equal(t, v, back)
		require.Equal(t, "rest", string(rest))
		for cut := range key {
			_, _, err := dec(key[:cut])
			require.ErrorIs(t, err, ErrCorrupt)
		}
		for _, w := range ascending[:i] {
			other := enc(nil, w)
			require.Negative(t, bytes.Compare(other, key), "%v < %v", w, v)
			require.False(t, bytes.HasPrefix(key, other), "%v, %v", w, v)
		}
	}
}

func TestKeyPartsKeepOrder(t *testing.T) {
	ordering(t, []int64{math.MinInt64, math.MinInt64 + 1, -1 << 32, -256, -2, -1, 0, 1, 2, 255, 256, 1 << 40, math.MaxInt64 - 1, math.MaxInt64}, AppendInt64, Int64)
	ordering(t, []uint64{0, 1, 255, 256, 1 << 63, math.MaxUint64}, AppendUint64, Uint64)
	ordering(t, []uint32{0, 1, 255, 256, 1 << 31, math.MaxUint32}, AppendUint32, Uint32)
	ordering(t, []time.Duration{math.MinInt64, -1, 0, 1, math.MaxInt64}, AppendTime[time.Duration], Time[time.Duration])
	ordering(t, []float64{math.Inf(-1), -math.MaxFloat64, -1.5, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1, 1.5, math.MaxFloat64, math.Inf(1)}, AppendFloat64, Float64)
	ordering(t, []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\xff", "\x01", "a", "a\x00", "a\x00b", "a\x01", "ab", "b", "\xff", "\xff\x00", "\xff\xff"}, AppendString[string], String)
}

func TestFloatBits(t *testing.T) {
	negZero := math.Copysign(0, -1)
	require.Negative(t, bytes.Compare(AppendFloat64(nil, negZero), AppendFloat64(nil, 0)))
	for _, v := range []float64{negZero, 0, math.NaN(), math.Float64frombits(0xfff8000000000001)} {
		back, _, err := Float64(AppendFloat64(nil, v))
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(v), math.Float64bits(back))
	}
}

func TestBytesAliasesPlainText(t *testing.T) {
	key := AppendString(nil, []byte("plain"))
	v, rest, err := Bytes(key)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Same(t, &key[0], &v[0])
	_, _, err = Bytes([]byte("a\x00\x02"))
	require.ErrorIs(t, err, ErrCorrupt)
}

func FuzzKeyOrder(f *testing.F) {
	f.Add("a", "a\x00", int64(-1), int64(0), 0.5, -0.5)
	f.Add("\x00\xff", "\x00\x01", int64(math.MinInt64), int64(math.MaxInt64), math.Inf(1), 0.0)
	f.Fuzz(func(t *testing.T, a, b string, i, j int64, x, y float64) {
		key := func(s string, n int64, v float64) []byte {
			return AppendInt64(AppendFloat64(AppendString(nil, s), v), n)
		}
		left, right := key(a, i, x), key(b, j, y)
		want := strings.Compare(a, b)
		if want == 0 && x != y {
			want = 1
			if x < y {
				want = -1
			}
		}
		if want == 0 {
			want = int(min(max(float64(i)-float64(j), -1), 1))
			if i != j && want == 0 {
				want = 1
				if i < j {
					want = -1
				}
			}
		}
		signed := math.Signbit(x) != math.Signbit(y) && x == y // -0 and 0: equal to us, ordered in bits
		if x == x && y == y && !(a == b && signed) {
			require.Equal(t, want, bytes.Compare(left, right))
		}
		s, rest, err := String(left)
		require.NoError(t, err)
		require.Equal(t, a, s)
		v, rest, err := Float64(rest)
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(x), math.Float64bits(v))
		n, rest, err := Int64(rest)
		require.NoError(t, err)
		require.Equal(t, i, n)
		require.Empty(t, rest)
	})
}

func FuzzKeyDecoders(f *testing.F) {
	f.Add([]byte("a\x00\x01"))
	f.Add([]byte("\x00\xff\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, rest, err := Bytes(data); err == nil {
			require.Equal(t, data, append(AppendString(nil, v), rest...), "one text has one encoding")
		}
		_, _, _ = Int64(data)
		_, _, _ = Uint32(data)
		_, _, _ = Float64(data)
	})
}

func TestRecord(t *testing.T) {
	for _, payload := range []string{"", "x", strings.Repeat("long", 1000)} {
		data := AppendRecord([]byte("before"), 7, []byte(payload))[len("before"):]
		version, back, err := Record(data)
		require.NoError(t, err)
		require.Equal(t, byte(7), version)
		require.Equal(t, payload, string(back))
		_, _, err = Record(append(bytes.Clone(data), 0))
		require.ErrorIs(t, err, ErrCorrupt)
		for i := range min(len(data), 64) {
			_, _, err = Record(data[:i])
			require.ErrorIs(t, err, ErrCorrupt)
			bad := bytes.Clone(data)
			bad[i] ^= 1 << rand.IntN(8)
			_, _, err = Record(bad)
			require.ErrorIs(t, err, ErrCorrupt)
		}
	}
	_, _, err := Record(make([]byte, 64))
	require.ErrorIs(t, err, ErrCorrupt, "zeroed bytes are no record")
}

func TestDecoder(t *testing.T) {
	var p []byte
	p = AppendUvarint(p, math.MaxUint64)
	p = AppendVarint(p, math.MinInt64)
	p = AppendBlob(p, "text")
	p = AppendBlob(p, []byte{})
	p = append(p, 9)
	p = AppendBool(AppendBool(p, true), false)
	p = AppendUint64(p, 10)
	p = AppendInt64(p, -10)
	p = AppendFloat64(p, -0.25)
	p = AppendUvarint(p, 2)
	p = append(p, "ab"...)
	read := func(d *Decoder) []any {
		return []any{d.Uvarint(), d.Varint(), d.String(), len(d.Bytes()), d.Byte(), d.Bool(), d.Bool(),
			d.Fixed64(), d.Int64(), d.Float64(), d.Count(1), d.Byte(), d.Byte()}
	}
	d := NewDecoder(p)
	require.Equal(t, []any{uint64(math.MaxUint64), int64(math.MinInt64), "text", 0, byte(9), true, false,
		uint64(10), int64(-10), -0.25, 2, byte('a'), byte('b')}, read(d))
	require.NoError(t, d.Err())
	require.NoError(t, d.Done())

	for cut := range p {
		d := NewDecoder(p[:cut])
		read(d)
		require.ErrorIs(t, d.Done(), ErrCorrupt, "cut at %d", cut)
	}
	d = NewDecoder(append(bytes.Clone(p), 0))
	read(d)
	require.NoError(t, d.Err())
	require.ErrorIs(t, d.Done(), ErrCorrupt)
	require.ErrorContains(t, d.Done(), "1 trailing bytes")
}

func TestDecoderErrorSticks(t *testing.T) {
	d := NewDecoder([]byte{2, 1, 1})
	require.False(t, d.Bool())
	require.False(t, d.Bool())
	first := d.Err()
	require.ErrorContains(t, first, "a truth value of 2 at byte 1 of 3")
	require.Zero(t, d.Uvarint())
	require.Nil(t, d.Bytes())
	d.Fail("another")
	require.Equal(t, first, d.Done())

	require.Zero(t, NewDecoder(AppendUvarint(nil, 1<<40)).Count(8))
	d = NewDecoder([]byte{3, 1, 2})
	require.Zero(t, d.Count(0), "three items need three bytes")
	require.ErrorIs(t, d.Err(), ErrCorrupt)
	d = NewDecoder([]byte("rest"))
	require.Equal(t, 4, d.Len())
	require.Equal(t, "rest", string(d.Rest()))
	require.NoError(t, d.Done())
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte{1, 2, 3}, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, data, script []byte) {
		d := NewDecoder(data)
		for _, s := range script {
			switch s % 10 {
			case 0:
				d.Uvarint()
			case 1:
				d.Varint()
			case 2:
				require.LessOrEqual(t, len(d.Bytes()), len(data))
			case 3:
				_ = d.String()
			case 4:
				d.Byte()
			case 5:
				d.Bool()
			case 6:
				d.Fixed64()
			case 7:
				d.Int64()
			case 8:
				d.Float64()
			case 9:
				require.LessOrEqual(t, d.Count(int(s)), len(data))
			}
		}
		if err := d.Done(); err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
		}
	})
}

func FuzzReadBatch(f *testing.F) {
	var b Batch
	b.Put([]byte("k"), []byte("v"))
	b.Delete([]byte("a"), []byte("b"))
	b.Delete([]byte("a"), []byte("a\x00"))
	f.Add(b.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		err := ReadBatch(data, func(k, v []byte) {}, func(from, to []byte) {})
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		// What is read can be written and read again with the same meaning.
		var again Batch
		require.NoError(t, ReadBatch(data, again.Put, again.Delete))
		one, err := ops(t, again.Bytes())
		require.NoError(t, err)
		var third Batch
		require.NoError(t, ReadBatch(again.Bytes(), third.Put, third.Delete))
		two, err := ops(t, third.Bytes())
		require.NoError(t, err)
		require.Equal(t, one, two)
	})
}

func FuzzRecord(f *testing.F) {
	f.Add(AppendRecord(nil, 1, []byte("payload")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if version, payload, err := Record(data); err == nil {
			require.Equal(t, data, AppendRecord(nil, version, payload))
		} else {
			require.ErrorIs(t, err, ErrCorrupt)
		}
	})
}
