package windowing

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

var minute = Span{0, 60_000_000_000}

func groupKey(values ...agg.Value) (key []byte) {
	for _, v := range values {
		key = v.AppendKey(key)
	}
	return key
}

func TestRowKey(t *testing.T) {
	const tail = `,"1970-01-01T00:00:00Z","1970-01-01T00:01:00Z"]`
	cases := []struct {
		name  string
		group []agg.Value
		want  string
	}{
		{"w", nil, `["w",[]` + tail},
		{"w", []agg.Value{agg.String("a")}, `["w",["a"]` + tail},
		{"w", []agg.Value{agg.Null(), agg.Bool(true), agg.Int(-1), agg.Float(1.5), agg.Float(2)}, `["w",[null,true,-1,1.5,2]` + tail},
		{"w", []agg.Value{agg.Int(math.MinInt64), agg.Float(1e300)}, `["w",[-9223372036854775808,1e+300]` + tail},
		{"w", []agg.Value{agg.String("")}, `["w",[""]` + tail},
		{"w", []agg.Value{agg.String("\x00\n\"\\/<\x7f")}, `["w",["\u0000\n\"\\/<` + "\x7f" + `"]` + tail},
		{"w", []agg.Value{agg.String("ü€😀\ufffd")}, `["w",["\u00fc\u20ac\ud83d\ude00\ufffd"]` + tail},
		{"w", []agg.Value{agg.JSON(`{"ü":["😀",1]}`)}, `["w",[{"\u00fc":["\ud83d\ude00",1]}]` + tail},
		{`größe "x"`, nil, `["gr\u00f6\u00dfe \"x\"",[]` + tail},
	}
	for _, c := range cases {
		got := RowKey(c.name, groupKey(c.group...), minute)
		require.Equal(t, c.want, got)
		checkRowKey(t, got)
	}
}

// checkRowKey demands an ASCII JSON array of four elements.
func checkRowKey(t *testing.T, key string) (elements []any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(key), &elements), key)
	require.Len(t, elements, 4)
	require.LessOrEqual(t, len(key), rowKeyLimit)
	for i := range len(key) {
		require.True(t, key[i] >= ' ' && key[i] < 0x80, key)
	}
	return elements
}

func TestRowKeyBounds(t *testing.T) {
	grid, err := NewTumbling(1, 0)
	require.NoError(t, err)
	require.Equal(t, `["w",[],"1969-12-31T23:59:59.999999999Z","1970-01-01T00:00:00Z"]`, RowKey("w", nil, grid.Slice(-1)))
	require.Equal(t, `["w",[],"2262-04-11T23:47:16.854775806Z","2262-04-11T23:47:16.854775807Z"]`, RowKey("w", nil, grid.Slice(watermark.Max)))
	require.Equal(t, `["w",[],"1677-09-21T00:12:43.145224193Z","1677-09-21T00:12:43.145224194Z"]`, RowKey("w", nil, grid.Slice(watermark.Min)))
}

// TestRowKeyAbbreviated: long groups, and groups that JSON cannot tell apart.
func TestRowKeyAbbreviated(t *testing.T) {
	long := strings.Repeat("x", 40_000)
	seen := map[string]string{}
	add := func(what, key string) {
		checkRowKey(t, key)
		require.NotContains(t, seen, key, what)
		seen[key] = what
	}
	for _, v := range []agg.Value{
		agg.String(long + "a"), agg.String(long + "b"), agg.String(long), agg.String(strings.Repeat("\"", 600)),
		agg.String(strings.Repeat("\x00", 600)), agg.String(strings.Repeat("😀", 100)),
		agg.String("\xff"), agg.String("\xfe"), agg.String("\ufffd"), agg.String("\xff\xff"),
		agg.Float(math.NaN()), agg.Float(math.Inf(1)), agg.Float(math.Inf(-1)), agg.Null(),
	} {
		add(fmt.Sprintf("%.20q", v.AppendJSON(nil)), RowKey("w", groupKey(v), minute))
	}
	add("two", RowKey("w", groupKey(agg.String(long), agg.String("a")), minute))
	add("two others", RowKey("w", groupKey(agg.String(long), agg.String("b")), minute))
	add("another window", RowKey("w", groupKey(agg.String(long)), Span{0, 1}))
	add("long name", RowKey(long, groupKey(agg.String(long)), minute))
	add("another long name", RowKey(long+"1", groupKey(agg.String(long)), minute))
	add("name of bytes", RowKey("\xff", nil, minute))
	add("another name of bytes", RowKey("\xfe", nil, minute))

	abbreviated := checkRowKey(t, RowKey("w", groupKey(agg.String(long)), minute))[1].(map[string]any)
	require.Equal(t, `["`+strings.Repeat("x", prefixLimit-4), abbreviated["prefix"].(string)[:prefixLimit-2])
	require.Len(t, abbreviated["sha256"], 64)
	// Nobody can make a group that looks like an abbreviated one.
	object, err := json.Marshal(abbreviated)
	require.NoError(t, err)
	add("forged", RowKey("w", groupKey(agg.JSON(string(object))), minute))
}

// TestRowKeyLimit goes over the length at which keys begin to be abbreviated.
func TestRowKeyLimit(t *testing.T) {
	whole := 0
	for n := range 600 {
		key := RowKey("w", groupKey(agg.String(strings.Repeat("x", n))), minute)
		if list, ok := checkRowKey(t, key)[1].([]any); ok {
			require.Len(t, list[0], n)
			whole = n
			require.Equal(t, len(`["w",[""],"1970-01-01T00:00:00Z","1970-01-01T00:01:00Z"]`)+n, len(key))
		}
	}
	require.Equal(t, rowKeyLimit-len(`["w",[""],"1970-01-01T00:00:00Z","1970-01-01T00:01:00Z"]`), whole)
}

// TestRowKeyDistinct: distinct groups have distinct row keys.
func TestRowKeyDistinct(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	byGroup := map[string]string{}
	byKey := map[string]string{}
	id := NewIdentity("w")
	for range 20_000 {
		var group []byte
		for range 2 {
			group = randomValue(r).AppendKey(group)
		}
		key := string(id.AppendRowKey(nil, group, AppendSpan(nil, minute)))
		checkRowKey(t, key)
		if old, ok := byKey[key]; ok {
			require.Equal(t, old, string(group), key)
		}
		if old, ok := byGroup[string(group)]; ok {
			require.Equal(t, old, key)
		}
		byKey[key], byGroup[string(group)] = string(group), key
	}
}

func randomValue(r *rand.Rand) agg.Value {
	switch r.IntN(6) {
	case 0:
		return agg.Null()
	case 1:
		return agg.Bool(r.IntN(2) == 0)
	case 2:
		return agg.Int(edgeInt(r))
	case 3:
		return agg.Float(math.Float64frombits(r.Uint64()))
	case 4:
		return agg.JSON(`["` + string(rune('a'+r.IntN(3))) + `"]`)
	}
	alphabet := []string{"a", "\"", "\\", "\x00", "ü", "\xff", "\ufffd", ",", strings.Repeat("z", 200)}
	var s string
	for range r.IntN(4) {
		s += alphabet[r.IntN(len(alphabet))]
	}
	return agg.String(s)
}

func TestRowID(t *testing.T) {
	key := RowKey("w", groupKey(agg.String("a")), minute)
	require.Equal(t, `["w",["a"],"1970-01-01T00:00:00Z","1970-01-01T00:01:00Z",1]`, RowID(key, 1))
	require.True(t, strings.HasSuffix(RowID(key, math.MaxInt64), `,9223372036854775807]`))
	require.Empty(t, RowID("", 1), "late rows have no identity")
}

func TestRowKeyPanicsOnDamage(t *testing.T) {
	require.Panics(t, func() { RowKey("w", []byte{0xff}, minute) })
}

func BenchmarkRowKey(b *testing.B) {
	id := NewIdentity("tumbling_window")
	tail := AppendSpan(nil, minute)
	for _, c := range []struct{ name, text string }{{"ascii", "customer-000123"}, {"utf8", "kundin-äöü"}, {"long", strings.Repeat("x", 1000)}} {
		b.Run(c.name, func(b *testing.B) {
			group := groupKey(agg.String(c.text))
			var buf []byte
			b.ReportAllocs()
			for range b.N {
				buf = id.AppendRowKey(buf[:0], group, tail)
			}
		})
	}
}
