package agg

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// mustParse reads a call; a reduce gets a Reducer that adds integers.
func mustParse(t testing.TB, text string) *Call {
	c, err := Parse(text)
	require.NoError(t, err)
	if c.Function.Name == "reduce" {
		c.Reducer = adder{}
	}
	return c
}

// adder is the Reducer of the examples, in Go.
type adder struct{}

var errNoInteger = errors.New("not an integer")

func (adder) Init() (Value, error)                     { return Int(0), nil }
func (adder) Result(acc Value) (Value, error)          { return acc, nil }
func (a adder) Merge(left, right Value) (Value, error) { return a.Add(left, right) }
func (adder) Add(acc, value Value) (Value, error) {
	if value.Kind() != KindInt {
		return Value{}, errNoInteger
	}
	return Int(acc.AsInt() + value.AsInt()), nil
}

// inputs makes rows of a JSON list; the event time grows by a second.
func inputs(t testing.TB, c *Call, list string) []Input {
	d := json.NewDecoder(strings.NewReader(list))
	d.UseNumber()
	var items []any
	require.NoError(t, d.Decode(&items))
	rows := make([]Input, len(items))
	for i, item := range items {
		rows[i] = Input{Time: watermark.Time(i) * 1e9, Arrival: int64(i)}
		by := any(nil)
		if pair, ok := item.([]any); ok && len(c.Function.Args) == 2 {
			item, by = pair[0], pair[1]
		}
		var err error
		rows[i].Value, err = FromAny(item)
		require.NoError(t, err)
		rows[i].By, err = FromAny(by)
		require.NoError(t, err)
		require.NoError(t, c.Function.Check(c, rows[i]))
	}
	return rows
}

// fold adds all rows to one accumulator.
func fold(c *Call, rows []Input) Accumulator {
	acc := c.Function.New(c)
	for _, in := range rows {
		acc.Add(in)
	}
	return acc
}

// scatter adds the rows, shuffled, to several accumulators, merges these in a
// random order and writes and reads states in between.
func scatter(t testing.TB, r *rand.Rand, c *Call, rows []Input) Accumulator {
	parts := make([]Accumulator, 1+r.IntN(4))
	for i := range parts {
		parts[i] = c.Function.New(c)
	}
	for _, i := range r.Perm(len(rows)) {
		k := r.IntN(len(parts))
		parts[k].Add(rows[i])
		switch r.IntN(8) {
		case 0:
			parts[k] = reread(t, c, parts[k])
		case 1:
			_, _ = parts[k].Result()
		}
	}
	for len(parts) > 1 {
		i := r.IntN(len(parts) - 1)
		before, _ := parts[i+1].Result()
		parts[i].Merge(parts[i+1])
		after, _ := parts[i+1].Result()
		require.Equal(t, before, after, "%s: Merge changed its argument", c.Text)
		parts[i] = reread(t, c, parts[i])
		parts = append(parts[:i+1], parts[i+2:]...)
	}
	return parts[0]
}

// reread sends an accumulator through its state.
func reread(t testing.TB, c *Call, acc Accumulator) Accumulator {
	b := acc.Append([]byte("before"))
	got, rest, err := c.Function.Decode(c, append(b, "behind"...)[len("before"):])
	require.NoError(t, err, c.Text)
	require.Equal(t, "behind", string(rest), c.Text)
	return got
}

// show is a result as one comparable text.
func show(acc Accumulator) string {
	v, err := acc.Result()
	if err != nil {
		return "error: " + err.Error()
	}
	return string(v.AppendJSON(nil))
}
