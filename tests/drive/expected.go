package drive

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/connect-windowed/connect-windowed/tests/machine"
	"github.com/connect-windowed/connect-windowed/tests/oracle"
)

// Expected is a result of the oracle as a row of the windows that the random tests
// ask for: group k, aggregates n, values, sum, min, max and avg.
func Expected(r oracle.Result) machine.Expected {
	dec := json.NewDecoder(strings.NewReader(r.Group))
	dec.UseNumber()
	var group any
	if err := dec.Decode(&group); err != nil {
		panic(err)
	}
	return machine.Expected{After: r.After, Spanned: true, Floats: r.Floats, Start: decimal(r.Start), End: decimal(r.End), Fields: map[string]any{
		"k": group, "n": decimal(int64(r.Count)), "values": decimal(int64(r.Values)),
		"sum": nearest(r.Sum), "min": nearest(r.Min), "max": nearest(r.Max), "avg": nearest(r.Avg())}}
}

func decimal(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// nearest writes a whole number with all its digits and any other as the nearest
// float64.
func nearest(r *big.Rat) any {
	if r == nil {
		return nil
	}
	if r.IsInt() && r.Num().IsInt64() {
		return json.Number(r.Num().String())
	}
	f, _ := r.Float64()
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}
