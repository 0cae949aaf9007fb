package agg

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckNamesAggregateValueAndWhatIsAllowed(t *testing.T) {
	f := func(call string, v Value, parts ...string) {
		t.Helper()
		c := mustParse(t, call)
		err := c.Function.Check(c, Input{Value: v, By: Int(1)})
		require.ErrorIs(t, err, ErrArgument)
		for _, part := range append(parts, call, "null, which is ignored", "where:") {
			require.ErrorContains(t, err, part)
		}
	}
	f("sum(this.v)", String("abc"), `this.v is the text "abc"`, "finite numbers", ".number()")
	f("avg(this.v)", Bool(true), `bool true`)
	f("min(this.v)", JSON(`[1]`), `object or list [1]`)
	f("max(this.v)", Float(math.NaN()), `number NaN`)
	f("sum(this.v)", Float(math.Inf(-1)), `number -Inf`)
	f("count_if(this.v)", Int(1), `number 1`, "true and false")
	f("count(this.v)", Float(math.NaN()), `number NaN`)
	f("first(this.v)", Float(math.Inf(1)), `number +Inf`)
}

func TestCheckAcceptsWithoutAllocation(t *testing.T) {
	for _, c := range calls(t) {
		in := Input{Value: Null()}
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if c.Function.Check(c, in) != nil {
				panic("null refused")
			}
		}), c.Text)
	}
}
