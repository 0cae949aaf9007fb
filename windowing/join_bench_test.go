package windowing

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// benchRow is a payload of an ordinary length.
const benchRow = `{"id":"order-000000","customer":"c-4711","amount":42.5,"currency":"EUR","at":"2026-03-02T09:00:00Z"}`

// BenchmarkJoin reports the time per row of a left join in which every right row
// has one partner, with keys rows in state, saved after each batch.
func BenchmarkJoin(b *testing.B) {
	for _, keys := range []int{1000, 1_000_000} {
		for _, batch := range []int{1, 1000} {
			b.Run(fmt.Sprintf("keys=%d/batch=%d", keys, batch), func(b *testing.B) {
				hold := time.Duration(2 * keys)
				j := NewJoin(JoinConfig{Name: "j", Type: LeftJoin, Upper: hold, Codec: textCodec{}})
				n := int64(0)
				benchOperator(b, j, keys, batch, func(row *Row) {
					// By turns a left row and the right row of the left one keys / 2 ago.
					n++
					at, side := n, LeftSide
					if n%2 == 0 {
						at, side = n-int64(keys)/2-int64(keys)/2%2-1, RightSide
					}
					row.Key, row.Args[0] = agg.Int(at).AppendKey(row.Key[:0]), agg.Int(int64(side))
				})
			})
		}
	}
}

// BenchmarkDedupe reports the time per row with 1 % duplicates.
func BenchmarkDedupe(b *testing.B) {
	for _, keys := range []int{1000, 1_000_000} {
		for _, batch := range []int{1, 1000} {
			b.Run(fmt.Sprintf("keys=%d/batch=%d", keys, batch), func(b *testing.B) {
				d := NewDedupe(DedupeConfig{Name: "d", Within: time.Duration(keys)})
				n := int64(0)
				benchOperator(b, d, keys, batch, func(row *Row) {
					n++
					key := n
					if n%100 == 0 {
						key = n - int64(keys)/2
					}
					row.Key = agg.Int(key).AppendKey(row.Key[:0])
				})
			})
		}
	}
}

// benchOperator feeds rows a nanosecond apart until as many as keys are in state (a
// join keeps every second one),
// then measures.
func benchOperator(b *testing.B, op Operator, keys, batch int, fill func(row *Row)) {
	rows, out, to := make([]Row, batch), &Output{}, &discard{}
	for i := range rows {
		rows[i] = Row{Message: benchRow, Args: make([]agg.Value, 1)}
	}
	at := int64(0)
	feed := func() {
		for i := range rows {
			at++
			rows[i].Time, rows[i].Arrival = watermark.Time(at), at
			fill(&rows[i])
		}
		late := rows[0].Time - 1
		op.Process(Instant{Late: late, Close: late}, rows, out)
		for in := (Instant{Late: late, Close: rows[batch-1].Time}); !op.Advance(in, PartLimit, out); {
			out.Reset()
		}
		out.Reset()
		op.Save(to)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for at < int64(2*keys) {
		feed()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += batch {
		feed()
	}
	windows, groups := op.(interface{ Sizes() (int, int) }).Sizes()
	b.ReportMetric(float64(max(windows, groups)), "in_state")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(keys), "bytes/entry")
	runtime.KeepAlive(op)
}
