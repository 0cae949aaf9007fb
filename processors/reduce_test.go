package processors

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// reduced runs a call over JSON values, one after the other, or each on its own
// and then merged.
func reduced(t *testing.T, text string, merged bool, values ...string) (string, error) {
	t.Helper()
	call, err := agg.Parse(text)
	require.NoError(t, err)
	require.NoError(t, bindReducer(call))
	total := call.Function.New(call)
	for _, v := range values {
		value, err := agg.ParseJSON(v)
		require.NoError(t, err)
		one := total
		if merged {
			one = call.Function.New(call)
		}
		one.Add(agg.Input{Value: value})
		if merged {
			again, rest, err := call.Function.Decode(call, one.Append(nil))
			require.NoError(t, err)
			require.Empty(t, rest)
			total.Merge(again)
		}
	}
	v, err := total.Result()
	return string(v.AppendJSON(nil)), err
}

func TestReduce(t *testing.T) {
	for _, c := range []struct {
		call   string
		values []string
		want   string
	}{
		{"reduce(this.v, init: 0, add: this.acc + this.value, merge: this.left + this.right)", []string{"1", "2.5", "-4"}, "-0.5"},
		{"reduce(this.v, init: 0, add: this.acc + this.value, merge: this.left + this.right)", nil, "null"},
		{"reduce(this.v, init: 1, add: this.acc * this.value, merge: this.left * this.right)", []string{"3", "5", "7"}, "105"},
		{`reduce(this.v, init: "", add: this.acc + this.value, merge: this.left + this.right)`, []string{`"a"`, `"ü"`, `""`}, `"aü"`},
		{`reduce(this.v, init: [], add: this.acc.append(this.value), merge: this.left.concat(this.right), result: this.acc.sort().join("|"))`, []string{`"b"`, `"c"`, `"a"`}, `"a|b|c"`},
		{`reduce(this.v, init: {"n": 0, "sum": 0}, add: {"n": this.acc.n + 1, "sum": this.acc.sum + this.value}, merge: {"n": this.left.n + this.right.n, "sum": this.left.sum + this.right.sum}, result: this.acc.sum / this.acc.n)`, []string{"1", "2", "6"}, "3"},
		{"reduce(this.v, init: false, add: this.acc || this.value > 2, merge: this.left || this.right)", []string{"1", "2", "3"}, "true"},
		{"reduce(this.v, init: null, add: if this.acc == null || this.value > this.acc { this.value } else { this.acc }, merge: [this.left, this.right].max())", []string{"4", "9", "-1"}, "9"},
		{"reduce(this.v, init: 9007199254740993, add: this.acc, merge: this.left)", []string{"1"}, "9007199254740993"},
		{"reduce(this.v, init: 0, add: deleted(), merge: deleted())", []string{"1"}, "null"},
	} {
		for _, merged := range []bool{false, true} {
			got, err := reduced(t, c.call, merged, c.values...)
			require.NoError(t, err, c.call)
			require.JSONEq(t, c.want, got, "%s merged %v", c.call, merged)
		}
	}
}

func TestReduceThatFails(t *testing.T) {
	for step, call := range map[string]string{
		"init":   `reduce(this.v, init: throw("no"), add: 1, merge: 1)`,
		"add":    `reduce(this.v, init: 0, add: this.acc + this.value.uppercase(), merge: 1)`,
		"result": `reduce(this.v, init: 0, add: 1, merge: 1, result: this.acc.uppercase())`,
	} {
		got, err := reduced(t, call, false, "1", "2")
		require.ErrorIs(t, err, agg.ErrReduce, step)
		require.ErrorContains(t, err, step)
		require.Equal(t, "null", got)
	}
	_, err := reduced(t, `reduce(this.v, init: 0, add: 1, merge: throw("no"))`, true, "1", "2")
	require.ErrorIs(t, err, agg.ErrReduce)
	require.ErrorContains(t, err, "merge")
}

func TestReduceIsCompiledAtTheStart(t *testing.T) {
	good := map[string]string{"init": "0", "add": "this.acc", "merge": "this.left", "result": "this.acc"}
	for option := range good {
		var parts []string
		for _, name := range []string{"init", "add", "merge", "result"} {
			text := good[name]
			if name == option {
				text = "this.acc +"
			}
			parts = append(parts, name+": "+text)
		}
		call, err := agg.Parse("reduce(this.v, " + strings.Join(parts, ", ") + ")")
		require.NoError(t, err)
		err = bindReducer(call)
		require.ErrorContains(t, err, "reduce: "+option+": ")
		require.ErrorContains(t, err, `"this.acc +"`)
		require.Nil(t, call.Reducer)
	}
	call, err := agg.Parse("sum(this.v)")
	require.NoError(t, err)
	require.NoError(t, bindReducer(call))
	require.Nil(t, call.Reducer)
}
