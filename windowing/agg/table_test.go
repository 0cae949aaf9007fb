package agg

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

func TestTableIsCompleteAndSorted(t *testing.T) {
	functions := Functions()
	require.True(t, slices.IsSortedFunc(functions, func(a, b *Function) int { return strings.Compare(a.Name, b.Name) }))
	for _, f := range functions {
		require.NotEmpty(t, f.Examples, "%s has no example", f.Name)
		require.NotEmpty(t, f.Summary, f.Name)
		require.NotNil(t, f.Check, f.Name)
		require.NotNil(t, f.New, f.Name)
		require.NotNil(t, f.NewColumn, f.Name)
		require.NotNil(t, f.Decode, f.Name)
		require.LessOrEqual(t, f.MinArgs, len(f.Args), f.Name)
		for _, o := range f.Options {
			require.NotEmpty(t, o.Summary, "%s %s", f.Name, o.Name)
			require.True(t, o.Kind == OptionExpression || o.Min < o.Max, "%s %s", f.Name, o.Name)
		}
		covers := func(ends string) bool {
			return slices.ContainsFunc(f.Examples, func(e Example) bool { return e.Result == ends })
		}
		require.True(t, covers("null") || covers("0"), "%s has no example over nothing", f.Name)
	}
}

func TestExamples(t *testing.T) {
	r := random(t)
	for _, f := range Functions() {
		for _, e := range f.Examples {
			t.Run(e.Call+" over "+e.Values, func(t *testing.T) {
				c := mustParse(t, e.Call)
				require.Equal(t, f, c.Function)
				rows := inputs(t, c, e.Values)
				require.Equal(t, e.Result, show(fold(c, rows)))
				for range 50 {
					require.Equal(t, e.Result, show(scatter(t, r, c, rows)))
				}
			})
		}
	}
}

// random prints the seed that replays it.
func random(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// calls is one call of each function, with its required options.
func calls(t testing.TB) []*Call {
	var out []*Call
	for _, f := range Functions() {
		out = append(out, mustParse(t, f.Examples[0].Call))
	}
	return append(out, mustParse(t, "count(this.v)"))
}

// mixed gives values of all kinds, with repeats, small and extreme ones.
func mixed(r *rand.Rand) Value {
	switch r.IntN(12) {
	case 0:
		return Null()
	case 1, 2:
		return Bool(r.IntN(2) == 0)
	case 3:
		return Int(int64(r.Uint64()) >> r.IntN(64))
	case 4:
		return Int(r.Int64N(10))
	case 5:
		return Float(float64(r.Int64N(1000)) / 100)
	case 6:
		return Float(math.Float64frombits(r.Uint64()))
	case 7:
		return Float(float64(r.Int64N(10)))
	case 8:
		edges := edgeValues()
		return edges[r.IntN(len(edges))]
	case 9:
		return JSON(fmt.Sprintf(`[%d]`, r.IntN(5)))
	}
	return String(fmt.Sprintf("text %d", r.IntN(20)))
}

// rowsFor makes rows that the function accepts. Event times repeat.
func rowsFor(r *rand.Rand, c *Call, n int, value func(*rand.Rand) Value) []Input {
	var rows []Input
	for len(rows) < n {
		in := Input{Value: value(r), By: value(r), Time: watermark.Time(r.Int64N(20)), Arrival: int64(len(rows))}
		if len(c.Function.Args) < 2 {
			in.By = Null()
		}
		if c.Function.Check(c, in) == nil {
			rows = append(rows, in)
		}
	}
	return rows
}

func TestAnyOrderCutAndMergeGivesTheSameResult(t *testing.T) {
	r := random(t)
	for _, c := range calls(t) {
		t.Run(c.Text, func(t *testing.T) {
			for range 200 {
				value := mixed
				if c.Function.Name == "reduce" {
					value = func(r *rand.Rand) Value { return Int(r.Int64N(100)) }
				}
				rows := rowsFor(r, c, r.IntN(40), value)
				want := show(fold(c, rows))
				for range 5 {
					require.Equal(t, want, show(scatter(t, r, c, rows)))
				}
			}
		})
	}
}

func TestNoRowsAndOnlyNulls(t *testing.T) {
	for _, c := range calls(t) {
		want := "null"
		if v, err := c.Function.New(c).Result(); err == nil && v == Int(0) {
			want = "0" // the functions that count
		}
		require.Equal(t, want, show(fold(c, nil)), c.Text)
		if c.Text == "count()" {
			continue
		}
		nulls := make([]Input, 3)
		require.NoError(t, c.Function.Check(c, nulls[0]))
		require.Equal(t, want, show(fold(c, nulls)), c.Text)
	}
}

func TestResultsAreValidAndRepeatable(t *testing.T) {
	r := random(t)
	for _, c := range calls(t) {
		acc := fold(c, rowsFor(r, c, 100, mixed))
		first := show(acc)
		require.Equal(t, first, show(acc), c.Text)
		if v, err := acc.Result(); err != nil {
			require.True(t, v.IsNull(), c.Text)
		} else {
			require.True(t, v.IsFinite(), c.Text)
		}
	}
}

func TestStateRejectsTruncation(t *testing.T) {
	r := random(t)
	for _, c := range calls(t) {
		for range 20 {
			b := fold(c, rowsFor(r, c, r.IntN(30), mixed)).Append(nil)
			for n := range b {
				if _, _, err := c.Function.Decode(c, b[:n]); err != nil {
					require.ErrorIs(t, err, ErrState)
					require.ErrorContains(t, err, c.Function.Name)
				} else {
					t.Fatalf("%s: %d of %d bytes were enough", c.Text, n, len(b))
				}
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	all := calls(f)
	for i, c := range all {
		for range 5 {
			f.Add(byte(i), fold(c, rowsFor(r, c, r.IntN(30), mixed)).Append(nil))
		}
	}
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		c := all[int(which)%len(all)]
		acc, rest, err := c.Function.Decode(c, b)
		if err != nil {
			require.ErrorIs(t, err, ErrState)
			return
		}
		require.LessOrEqual(t, len(rest), len(b))
		want := show(acc)
		require.Equal(t, want, show(reread(t, c, acc)), c.Text)
		acc.Merge(reread(t, c, acc))
		for _, in := range rowsFor(rand.New(rand.NewPCG(2, 2)), c, 10, mixed) {
			acc.Add(in)
		}
		_ = show(acc)
	})
}
