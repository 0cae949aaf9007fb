package processors

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// BenchmarkExtract is what a watermark and a window read of a batch of orders, a
// row an operation: orders as they are, and with a long text that nobody asks for.
func BenchmarkExtract(b *testing.B) {
	note := `"note":"` + strings.Repeat("nine hundred letters of prose, ", 29) + `."`
	for _, c := range []struct{ name, front, back string }{
		{"order", "", ""},
		{"note in front", note + ",", ""},
		{"note behind", "", "," + note},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkExtract(b, c.front, c.back) })
	}
}

func benchmarkExtract(b *testing.B, front, back string) {
	const size, batches = 500, 8
	call, err := agg.Parse("sum(this.amount)")
	require.NoError(b, err)
	count, err := agg.Parse("count()")
	require.NoError(b, err)
	p, err := newProgram(
		compileWatermark([]sourceConfig{{eventTime: "this.order_ts", unit: watermark.Second}}),
		compileWindow([]windowing.GroupField{{Name: "page", Expr: "this.page"}},
			[]windowing.Aggregate{{Name: "orders", Call: count}, {Name: "total", Call: call}}),
	)
	require.NoError(b, err)
	stream := make([][]windowing.Row, batches)
	for i := range stream {
		var buffer []byte // the messages of a batch lie in one, as a scanner leaves them
		at := []int{0}
		for row := range size {
			n := i*size + row
			buffer = fmt.Appendf(buffer, `{%s"order_ts":"2026-03-02T%02d:%02d:%02d.%03dZ","page":"/item/%d","customer_id":%d,"amount":%d.%02d%s}`,
				front, n/1000%24, n/50%60, n%60, n%1000, n*7919%100_000, n*104_729%1_000_000, n%90, n%99+1, back)
			at = append(at, len(buffer))
		}
		rows := make([]windowing.Row, size)
		for row := range rows {
			msg := service.NewMessage(buffer[at[row]:at[row+1]:at[row+1]])
			msg.MetaSetMut("path", "orders.ndjson")
			rows[row] = windowing.Row{Time: watermark.Unset, Message: msg}
		}
		stream[i] = rows
	}
	b.ReportAllocs()
	for done := 0; done < b.N; done += size {
		p.extract(stream[done/size%batches])
	}
	b.StopTimer()
	for _, rows := range stream[:min(batches, b.N/size)] {
		for i := range rows {
			require.NoError(b, rows[i].Err)
		}
	}
}
