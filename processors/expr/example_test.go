package expr_test

import (
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/watermark"
)

func Example() {
	set := expr.NewSet()
	at, err := set.Time("event_time", "this.ts", watermark.Second)
	if err != nil {
		panic(err)
	}
	page, err := set.Value("group_by.page", "this.page")
	if err != nil {
		panic(err)
	}

	batch := service.MessageBatch{
		service.NewMessage([]byte(`{"ts":1700000040,"page":"/home"}`)),
		service.NewMessage([]byte(`{"ts":"2023-11-14T22:14:01Z"}`)),
		service.NewMessage([]byte(`{"ts":true}`)),
		service.NewMessage([]byte(`not json`)),
	}
	var frame expr.Frame // one for each goroutine, for batch after batch
	set.Eval(batch, &frame)
	for row := range batch {
		if err := frame.RowErr(row); err != nil {
			fmt.Println(err)
			continue
		}
		if err := frame.Err(row, at); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(frame.Time(row, at), string(frame.Value(row, page).AppendJSON(nil)))
	}
	// Output:
	// 2023-11-14T22:14:00Z "/home"
	// 2023-11-14T22:14:01Z null
	// event_time: this.ts is true, allowed are RFC 3339 texts such as "2023-11-14T22:13:20Z", timestamps, and numbers in the field's unit: the value cannot be used
	// the payload cannot be read: it is not JSON: invalid character 'o' in literal null (expecting 'u')
}
