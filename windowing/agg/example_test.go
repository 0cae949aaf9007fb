package agg_test

import (
	"fmt"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// A call is parsed once; each group of each window has an accumulator. Values
// are checked before any state changes, and partial results merge.
func Example() {
	call, err := agg.Parse(`avg(this.price, where: this.paid)`)
	if err != nil {
		panic(err)
	}
	f := call.Function
	morning, evening := f.New(call), f.New(call)
	morning.Add(agg.Input{Value: agg.Float(0.1)})
	morning.Add(agg.Input{Value: agg.Null()})
	evening.Add(agg.Input{Value: agg.Int(3)})

	fmt.Println(f.Check(call, agg.Input{Value: agg.String("12 EUR")}))

	stored := evening.Append(nil)
	restored, _, err := f.Decode(call, stored)
	if err != nil {
		panic(err)
	}
	morning.Merge(restored)
	average, err := morning.Result()
	fmt.Println(string(average.AppendJSON(nil)), err)

	_, err = agg.Parse(`average(this.price)`)
	fmt.Println(err)
	// Output:
	// bad argument of avg(this.price, where: this.paid): this.price is the text "12 EUR", allowed are finite numbers and null, which is ignored; convert it with .number(), or leave such rows out with a `where: <condition>`
	// 1.55 <nil>
	// bad aggregate "average(this.price)": unknown function "average" (did you mean avg?); allowed: any, approx_count_distinct, approx_quantile, avg, collect, collect_set, count, count_distinct, count_if, every, first, last, max, max_by, median, min, min_by, quantile, reduce, stddev, sum, top_k, variance
}
