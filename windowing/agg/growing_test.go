package agg

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestBigSetsAndSketchesDoNotDependOnOrder(t *testing.T) {
	r := random(t)
	for _, call := range []string{
		"count_distinct(this.v)", "collect_set(this.v)", "top_k(this.v, 7)", "collect(this.v)", "quantile(this.v, 0.37)", "approx_quantile(this.v, 0.37)",
		"approx_count_distinct(this.v)", "stddev(this.v)",
	} {
		c := mustParse(t, call)
		for _, n := range []int{100, 3000, 9000} {
			rows := rowsFor(r, c, n, func(r *rand.Rand) Value {
				if r.IntN(10) == 0 {
					return mixed(r)
				}
				return Int(r.Int64N(int64(2 * n)))
			})
			require.Equal(t, show(fold(c, rows)), show(scatterLarge(t, r, c, rows)), call)
		}
	}
}

// scatterLarge is scatter with a few states written instead of one per row.
func scatterLarge(t testing.TB, r *rand.Rand, c *Call, rows []Input) Accumulator {
	parts := make([]Accumulator, 5)
	for i := range parts {
		parts[i] = c.Function.New(c)
	}
	for n, i := range r.Perm(len(rows)) {
		k := r.IntN(len(parts))
		parts[k].Add(rows[i])
		if n%1000 == 0 {
			_ = show(parts[k])
			parts[k] = reread(t, c, parts[k])
		}
	}
	for _, p := range parts[1:] {
		parts[0].Merge(reread(t, c, p))
	}
	return parts[0]
}

// limited is one call of each bounded function, with room for four values and
// twenty bytes.
var limited = []string{
	"collect(this.v, limit: 4, limit_bytes: 20)",
	"collect_set(this.v, limit: 4, limit_bytes: 20)",
	"count_distinct(this.v, limit: 4, limit_bytes: 20)",
	"top_k(this.v, 2, limit: 4, limit_bytes: 20)",
	"quantile(this.v, 0.5, limit: 4)",
	"median(this.v, limit: 4)",
}

func TestEveryBoundedFunctionIsGrowingAndTested(t *testing.T) {
	bounded := 0
	for _, f := range Functions() {
		c := mustParse(t, f.Examples[0].Call)
		_, growing := f.New(c).(Growing)
		require.Equal(t, c.limit > 0, growing, f.Name)
		if growing {
			bounded++
		}
	}
	require.Len(t, limited, bounded)
}

func TestPastTheLimitIsAnErrorAndNothingIsKept(t *testing.T) {
	r := random(t)
	for _, call := range limited {
		t.Run(call, func(t *testing.T) {
			c := mustParse(t, call)
			var rows []Input
			for i := range 4 {
				rows = append(rows, Input{Value: Int(int64(i)), Arrival: int64(i)})
			}
			want := show(fold(c, rows))
			require.NotContains(t, want, "error")
			require.Equal(t, want, show(scatter(t, r, c, rows)))
			requireOverLimit(t, r, c, append(rows, Input{Value: Float(4.5), Arrival: 4}), "option limit")
		})
	}
}

func requireOverLimit(t *testing.T, r *rand.Rand, c *Call, rows []Input, option string) {
	t.Helper()
	for range 20 {
		acc := scatter(t, r, c, rows)
		acc.Add(rows[0])
		v, err := acc.Result()
		require.ErrorIs(t, err, ErrLimit)
		require.ErrorContains(t, err, option)
		require.ErrorContains(t, err, c.Function.Name)
		require.True(t, v.IsNull())
		require.Len(t, acc.Append(nil), 1)
	}
}

func TestTooManyBytesOfTextAreAnError(t *testing.T) {
	r := random(t)
	for _, call := range limited[:4] {
		c := mustParse(t, call)
		rows := []Input{{Value: String("0123456789")}, {Value: String("012345678\x00"), Arrival: 1}}
		require.NotContains(t, show(fold(c, rows)), "error", call)
		requireOverLimit(t, r, c, append(rows, Input{Value: String("x"), Arrival: 2}), "option limit_bytes")
	}
}

func TestPartsMakeTheWhole(t *testing.T) {
	r := random(t)
	for _, call := range append([]string{"collect_set(this.v)", "top_k(this.v, 3)", "collect(this.v)", "quantile(this.v, 0.5)"}, limited...) {
		for range 50 {
			c := mustParse(t, call)
			acc := c.Function.New(c).(Growing)
			var parts [][]byte
			for _, in := range rowsFor(r, c, r.IntN(30), mixed) {
				if r.IntN(2) == 0 {
					acc.Add(in)
				} else {
					acc.Merge(fold(c, []Input{in}))
				}
				if r.IntN(4) == 0 {
					parts = append(parts, acc.AppendNew(nil))
					acc.Saved()
				}
				if r.IntN(10) == 0 { // a restart
					acc = join(t, c, parts, acc.AppendNew(nil))
				}
			}
			require.Equal(t, show(acc), show(join(t, c, parts, acc.AppendNew(nil))), call)
			before := len(parts)
			acc.Saved()
			require.LessOrEqual(t, len(acc.AppendNew(nil)), 3, "%s: nothing is new after %d parts", call, before)
		}
	}
}

// join puts an accumulator together; what the last part holds is not saved yet.
func join(t *testing.T, c *Call, parts [][]byte, last []byte) Growing {
	acc := c.Function.New(c).(Growing)
	for _, part := range parts {
		acc.Merge(decodeAll(t, c, part))
	}
	if len(parts) > 0 {
		acc.Saved()
	}
	acc.Merge(decodeAll(t, c, last))
	return acc
}

func decodeAll(t *testing.T, c *Call, b []byte) Accumulator {
	acc, rest, err := c.Function.Decode(c, b)
	require.NoError(t, err)
	require.Empty(t, rest)
	return acc
}

func TestKeptTextsAreCopies(t *testing.T) {
	for _, c := range calls(t) {
		buffer := []byte("kept")
		in := Input{Value: String(unsafe.String(&buffer[0], len(buffer))), By: Int(1)}
		if c.Function.Check(c, in) != nil || c.Function.Name == "reduce" {
			continue
		}
		acc := fold(c, []Input{in})
		want := show(acc)
		state := string(acc.Append(nil))
		copy(buffer, "gone")
		require.Equal(t, want, show(acc), c.Text)
		require.Equal(t, state, string(acc.Append(nil)), c.Text)
	}
}

func TestReduceFailsOnTheRowOnly(t *testing.T) {
	c := mustParse(t, "reduce(this.v, init: 0, add: this.acc + this.value, merge: this.left + this.right, limit_bytes: 10)")
	rows := []Input{{Value: Int(1)}, {Value: String("x")}, {Value: Int(2)}}
	r := random(t)
	for range 20 {
		acc := scatter(t, r, c, rows)
		_, err := acc.Result()
		require.ErrorIs(t, err, ErrReduce)
		require.ErrorContains(t, err, "add: "+errNoInteger.Error())
	}
	c.Reducer = joiner{}
	_, err := fold(c, []Input{{Value: String("12345")}, {Value: String("123456")}}).Result()
	require.ErrorContains(t, err, "option limit_bytes of 10")
}

// joiner is a Reducer that makes ever longer texts.
type joiner struct{ adder }

func (joiner) Init() (Value, error) { return String(""), nil }
func (joiner) Add(acc, value Value) (Value, error) {
	return String(acc.AsString() + value.AsString()), nil
}

func TestLimitIsNoPartOfTheDefinition(t *testing.T) {
	require.Equal(t, "collect(this.v)", mustParse(t, "collect(this.v, limit: 5)").Text)
	require.Equal(t, "quantile(this.v, q: 0.99)", mustParse(t, "quantile(this.v, 0.990, limit: 5)").Text)
	require.Equal(t, "top_k(this.v, k: 3)", mustParse(t, "top_k(this.v, 3)").Text)
	require.Equal(t, "approx_quantile(this.v, q: 0.5, accuracy: 0.01)", mustParse(t, "approx_quantile(this.v, 0.5)").Text)
}

func BenchmarkGrowing(b *testing.B) {
	for _, call := range []string{"collect(this.v)", "count_distinct(this.v)", "quantile(this.v, 0.99)"} {
		b.Run(fmt.Sprintf("Result/%s/n=10000", call), func(b *testing.B) {
			c := mustParse(b, call)
			acc := fold(c, rowsFor(rand.New(rand.NewPCG(1, 1)), c, 10000, func(r *rand.Rand) Value { return Int(r.Int64N(1e9)) }))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = acc.Result()
			}
		})
	}
}
