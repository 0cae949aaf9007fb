package windowing

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// parseAggregates makes aggregates named a, b, c, ...
func parseAggregates(t testing.TB, texts ...string) (list []Aggregate) {
	for i, text := range texts {
		call, err := agg.Parse(text)
		require.NoError(t, err)
		list = append(list, Aggregate{Name: string(rune('a' + i)), Call: call})
	}
	return list
}

// TestArgLayout: each text is evaluated once, however many calls use it.
func TestArgLayout(t *testing.T) {
	l := NewArgLayout(parseAggregates(t, "count()", "sum(this.v)", "avg(this.v)", "min_by(this.k, this.v)", "count(where: this.paid)", "sum(this.paid)"))
	require.Equal(t, []string{"this.v", "this.k", "this.paid"}, l.Exprs())
	row := &Row{Time: 5, Arrival: 7, Args: []agg.Value{agg.Int(1), agg.String("k"), agg.Bool(true)}}
	want := []agg.Input{
		{}, {Value: agg.Int(1)}, {Value: agg.Int(1)}, {Value: agg.String("k"), By: agg.Int(1)}, {}, {Value: agg.Bool(true)},
	}
	for i, in := range want {
		in.Time, in.Arrival = 5, 7
		got, ok := l.input(i, row)
		require.True(t, ok)
		require.Equal(t, in, got)
	}
	row.Args[2] = agg.Bool(false)
	_, ok := l.input(4, row)
	require.False(t, ok)
}

func TestArgLayoutEmpty(t *testing.T) {
	l := NewArgLayout(nil)
	require.Empty(t, l.Exprs())
	require.NoError(t, l.Check(&Row{}))
}

func TestArgLayoutCheck(t *testing.T) {
	l := NewArgLayout(parseAggregates(t, "count()", "sum(this.v, where: this.paid)"))
	check := func(v, paid agg.Value) error { return l.Check(&Row{Args: []agg.Value{v, paid}}) }
	for _, v := range []agg.Value{agg.Int(1), agg.Float(1.5), agg.Null()} {
		require.NoError(t, check(v, agg.Bool(true)))
	}
	for _, v := range []agg.Value{agg.String("1"), agg.Float(math.NaN()), agg.JSON("[]")} {
		err := check(v, agg.Bool(true))
		require.ErrorIs(t, err, agg.ErrArgument)
		require.ErrorContains(t, err, `aggregate "b"`)
		require.NoError(t, check(v, agg.Bool(false)), "does not take part")
		require.NoError(t, check(v, agg.Null()), "does not take part")
	}
	for _, paid := range []agg.Value{agg.Int(1), agg.String("true"), agg.JSON("{}")} {
		err := check(agg.Int(1), paid)
		require.ErrorIs(t, err, ErrFilter)
		require.ErrorContains(t, err, `aggregate "b"`)
		require.ErrorContains(t, err, "this.paid")
	}
}

// TestArgLayoutFailedArgument: an expression that failed is the row's error only
// where an aggregate takes it in.
func TestArgLayoutFailedArgument(t *testing.T) {
	l := NewArgLayout(parseAggregates(t, "count()", "sum(this.v, where: this.paid)"))
	broken := errors.New("broken")
	row := func(paid agg.Value) *Row { return &Row{Args: []agg.Value{agg.Null(), paid}} }
	require.NoError(t, l.CheckEvaluated(row(agg.Bool(false)), map[int]error{0: broken}))
	err := l.CheckEvaluated(row(agg.Bool(true)), map[int]error{0: broken})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, `aggregate "b"`)
	require.ErrorIs(t, l.CheckEvaluated(row(agg.Null()), map[int]error{1: broken}), broken, "the filter itself")
}
