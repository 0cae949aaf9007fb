package watermark_test

import (
	"fmt"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// Two partitions out of step: W is the slower one's newest time less the delay.
func ExampleFrontier() {
	f := watermark.NewFrontier(watermark.Config{
		Sources: []watermark.SourceConfig{{Delay: time.Minute, Partitions: []string{"p0", "p1"}}},
	}, watermark.Clock{})

	for _, batch := range [][]struct{ partition, time string }{
		{{"p0", "2023-11-14T22:14:00Z"}}, // p1 is declared: W waits for it
		{{"p1", "2023-11-14T22:10:00Z"}},
		{{"p0", "2023-11-14T22:20:00Z"}, {"p1", "2023-11-14T22:16:30.5Z"}},
	} {
		for _, row := range batch {
			t, err := watermark.ParseRFC3339(row.time)
			if err != nil {
				panic(err)
			}
			f.Observe(0, row.partition, t)
		}
		late, close := f.Advance(watermark.Clock{})
		fmt.Println("rows are late by", late, "- windows close by", close)
	}
	// Output:
	// rows are late by unset - windows close by unset
	// rows are late by unset - windows close by 2023-11-14T22:09:00Z
	// rows are late by 2023-11-14T22:09:00Z - windows close by 2023-11-14T22:15:30.5Z
}

// A unit is declared and never guessed.
func ExampleUnit_FromInt() {
	t, _ := watermark.Millisecond.FromInt(1_700_000_040_000)
	fmt.Println(t)
	_, err := watermark.Second.FromInt(1_700_000_040_000)
	fmt.Println(err)
	// Output:
	// 2023-11-14T22:14:00Z
	// event time out of range: 1700000040000 read as unit s is not between 1677-09-21T00:12:43.145224193Z and 2262-04-11T23:47:16.854775806Z; read as unit ms it is 2023-11-14T22:14:00Z: likely the unit is ms
}

// The window of a time is found the same way before and after 1970.
func ExampleTime_Floor() {
	for _, n := range []int64{-1, 0, 9, 10} {
		t, _ := watermark.Second.FromInt(n)
		fmt.Println(t.Floor(10*time.Second, 0))
	}
	// Output:
	// 1969-12-31T23:59:50Z
	// 1970-01-01T00:00:00Z
	// 1970-01-01T00:00:00Z
	// 1970-01-01T00:00:10Z
}
