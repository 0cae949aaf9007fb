package agg

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// edgeValues holds at least one value of every kind and the ends of each.
func edgeValues() []Value {
	values := []Value{Null(), Bool(false), Bool(true)}
	for _, i := range []int64{0, 1, -1, 255, 256, -255, -256, 1 << 53, 1<<53 + 1, -1<<53 - 1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		values = append(values, Int(i))
	}
	for _, f := range []float64{
		0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, -1.5, 0.1, 1e-7, 1e21, 1e300, -1e300, 1 << 53, 1 << 63, -1 << 63,
		math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64,
		math.NaN(), math.Inf(1), math.Inf(-1), math.Nextafter(1<<63, 0), math.Nextafter(-1<<63, -math.MaxFloat64),
	} {
		values = append(values, Float(f))
	}
	for _, s := range []string{"", " ", "1", "null", "a", "a\x00", "a\x00b", "a\x00\xff", "\x00", "\x00\x01", "é", "x|y", "\xff"} {
		values = append(values, String(s))
	}
	return append(values, JSON(`[]`), JSON(`{}`), JSON(`{"a":1}`), JSON(`[1]`), JSON(`["a\u0000"]`))
}

func TestKeysAreEqualExactlyForEqualValues(t *testing.T) {
	values := edgeValues()
	for _, v := range values {
		for _, w := range values {
			a, b := v.AppendKey(nil), w.AppendKey(nil)
			require.Equal(t, v.Compare(w), bytes.Compare(a, b), "%v against %v", v, w)
			require.Equal(t, v.Canonical() == w.Canonical(), bytes.Equal(a, b), "%v against %v", v, w)
			if !bytes.Equal(a, b) {
				require.False(t, bytes.HasPrefix(b, a), "the key of %v begins that of %v", v, w)
			}
		}
	}
}

func TestEqualNumbersShareAKeyAndTextsDoNot(t *testing.T) {
	key := func(v Value) string { return string(v.AppendKey(nil)) }
	require.Equal(t, key(Int(1)), key(Float(1)))
	require.Equal(t, key(Int(0)), key(Float(math.Copysign(0, -1))))
	require.Equal(t, key(Int(math.MinInt64)), key(Float(-1<<63)))
	require.NotEqual(t, key(Int(1)), key(String("1")))
	require.NotEqual(t, key(Null()), key(String("null")))
	require.NotEqual(t, key(Null()), key(String("")))
	require.NotEqual(t, key(Int(1<<53+1)), key(Float(1<<53)))
}

func TestKeyRoundTrip(t *testing.T) {
	for _, v := range edgeValues() {
		got, rest, err := DecodeKey(append(v.AppendKey(nil), "rest"...))
		require.NoError(t, err)
		require.Equal(t, v.Canonical(), got)
		require.Equal(t, "rest", string(rest))
	}
}

func TestCompositeKeysDoNotCollide(t *testing.T) {
	pairs := [][2]string{{"x|y", "z"}, {"x", "y|z"}, {"x\x00", "y"}, {"x", "\x00y"}, {"", "xy"}, {"xy", ""}}
	seen := map[string]bool{}
	for _, p := range pairs {
		seen[string(String(p[1]).AppendKey(String(p[0]).AppendKey(nil)))] = true
	}
	require.Len(t, seen, len(pairs))
}

func TestRandomNumbersKeepTheirOrderInKeys(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	number := func() Value {
		if r.IntN(2) == 0 {
			return Int(int64(r.Uint64()) >> r.IntN(64))
		}
		return Float(math.Float64frombits(r.Uint64()))
	}
	for range 20000 {
		v, w := number(), number()
		require.Equal(t, v.Compare(w), bytes.Compare(v.AppendKey(nil), w.AppendKey(nil)), "%v against %v", v.Any(), w.Any())
		got, rest, err := DecodeKey(v.AppendKey(nil))
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, v.Canonical(), got)
	}
}

func TestStateRoundTrip(t *testing.T) {
	for _, v := range edgeValues() {
		b := v.Append(nil)
		got, rest, err := DecodeValue(append(b[:len(b):len(b)], 7))
		require.NoError(t, err)
		require.Equal(t, []byte{7}, rest)
		require.True(t, v == got, "%v came back as %v", v, got)
		for n := range b {
			_, _, err := DecodeValue(b[:n])
			require.ErrorIs(t, err, ErrState, "%v cut to %d bytes", v, n)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	for want, v := range map[string]Value{
		`null`:                         Null(),
		`true`:                         Bool(true),
		`9007199254740993`:             Int(1<<53 + 1),
		`-9223372036854775808`:         Int(math.MinInt64),
		`1`:                            Float(1),
		`0`:                            Float(math.Copysign(0, -1)),
		`0.1`:                          Float(0.1),
		`1e-7`:                         Float(1e-7),
		`1e+21`:                        Float(1e21),
		`100000000000000000000`:        Float(1e20),
		`5e-324`:                       Float(math.SmallestNonzeroFloat64),
		`"<&>é"`:                       String("<&>é"),
		`"\"\\\b\f\n\r\t\u0000\u001f"`: String("\"\\\b\f\n\r\t\x00\x1f"),
		"\"a\ufffdb\"":                 String("a\xffb"),
		`{"a":[1,null]}`:               JSON(`{"a":[1,null]}`),
	} {
		require.Equal(t, want, string(v.AppendJSON(nil)))
	}
	for _, v := range edgeValues() {
		require.True(t, json.Valid(v.AppendJSON(nil)), "%v", v)
	}
	require.Equal(t, "null", string(Float(math.NaN()).AppendJSON(nil)))
	require.Equal(t, "null", string(Float(math.Inf(-1)).AppendJSON(nil)))
}

func TestFromAny(t *testing.T) {
	at := time.Date(2024, 2, 29, 13, 0, 0, 120, time.FixedZone("", 3600))
	for _, c := range []struct {
		in   any
		want Value
	}{
		{nil, Null()}, {true, Bool(true)}, {int64(-5), Int(-5)}, {7, Int(7)}, {uint64(8), Int(8)}, {uint8(9), Int(9)},
		{uint64(1e19), Float(1e19)}, {uint(1e19), Float(1e19)}, {1.5, Float(1.5)}, {1.0, Float(1)}, {"x", String("x")}, {[]byte("x"), String("x")},
		{json.Number("9007199254740993"), Int(1<<53 + 1)}, {json.Number("1.0"), Float(1)}, {json.Number("18446744073709552000"), Float(1 << 64)}, {json.Number("18446744073709551615.0"), Float(1 << 64)},
		{at, String("2024-02-29T12:00:00.00000012Z")},
		{[]any{}, JSON(`[]`)},
		{map[string]any{"b": []any{1.0, "1"}, "a": json.Number("1e2"), "": nil}, JSON(`{"":null,"a":100,"b":[1,"1"]}`)},
		{[]any{uint64(math.MaxUint64), json.Number("18446744073709551614"), json.Number("-9223372036854775809"), json.Number("9223372036854775808"), json.Number("18446744073709552000"), json.Number("1e21"), json.Number("1000000000000000000000"), json.Number("1000000000000000000001")},
			JSON(`[18446744073709551615,18446744073709551614,-9223372036854775809,9223372036854775808,18446744073709552000,1e+21,1e+21,1000000000000000000001]`)},
	} {
		got, err := FromAny(c.in)
		require.NoError(t, err, "%v", c.in)
		require.Equal(t, c.want, got, "%v", c.in)
	}
}

func TestFromAnyRefuses(t *testing.T) {
	for _, c := range []struct {
		in   any
		want error
	}{
		{"a\xff", ErrUTF8}, {[]byte{0xfe}, ErrUTF8}, {[]any{"\xff"}, ErrUTF8}, {map[string]any{"\xff": 1}, ErrUTF8},
		{[]any{math.NaN()}, ErrNotFinite}, {map[string]any{"a": math.Inf(1)}, ErrNotFinite}, {json.Number("1e400"), ErrNotFinite},
		{uint64(math.MaxUint64), ErrDigits}, {uint(math.MaxUint64), ErrDigits}, {json.Number("-9223372036854775809"), ErrDigits},
		{struct{}{}, ErrNoValue}, {[]any{make(chan int)}, ErrNoValue},
	} {
		_, err := FromAny(c.in)
		require.ErrorIs(t, err, c.want, "%v", c.in)
	}
}

func TestParseJSON(t *testing.T) {
	v, err := ParseJSON(` {"b" : 1.0, "a":-0.0, "c":{"z":1,"y":2}} `)
	require.NoError(t, err)
	require.Equal(t, JSON(`{"a":0,"b":1,"c":{"y":2,"z":1}}`), v)
	require.Equal(t, map[string]any{"a": json.Number("0"), "b": json.Number("1"), "c": map[string]any{"y": json.Number("2"), "z": json.Number("1")}}, v.Any())
	v, err = ParseJSON(`[18446744073709551615, {"id":18446744073709551614}]`)
	require.NoError(t, err)
	require.Equal(t, JSON(`[18446744073709551615,{"id":18446744073709551614}]`), v, "neighbours do not become one key")
	for _, text := range []string{``, `{`, `1 2`, `[1]]`} {
		_, err := ParseJSON(text)
		require.Error(t, err, text)
	}
}

func FuzzDecodeKey(f *testing.F) {
	for _, v := range edgeValues() {
		f.Add(v.AppendKey(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, rest, err := DecodeKey(b)
		if err != nil {
			return
		}
		require.Equal(t, b[:len(b)-len(rest)], v.AppendKey(nil), "a key has one spelling")
	})
}

func FuzzDecodeValue(f *testing.F) {
	for _, v := range edgeValues() {
		f.Add(v.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, _, err := DecodeValue(b)
		if err != nil {
			return
		}
		again, rest, err := DecodeValue(v.Append(nil))
		require.NoError(t, err)
		require.Empty(t, rest)
		require.True(t, v == again)
	})
}

func BenchmarkAppendKey(b *testing.B) {
	for name, v := range map[string]Value{"int": Int(12345), "float": Float(1.25), "text": String("customer-12345")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, 64)
			for b.Loop() {
				buf = v.AppendKey(buf[:0])
			}
		})
	}
}
