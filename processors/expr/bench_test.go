package expr

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/watermark"
)

const batchSize = 256

// orders is a batch of raw messages of about 170 bytes: ten pages, a customer of
// their own each.
func orders(tb testing.TB) service.MessageBatch {
	batch := make(service.MessageBatch, batchSize)
	size := 0
	for i := range batch {
		doc := fmt.Appendf(nil, `{"order_id":"o-%07d","order_ts":%d,"page":"/product/%d","amount":%d.%02d,"currency":"EUR","customer_id":"customer-%05d","paid":true,"ship":{"city":"Bern","country":"CH"}}`,
			i, 1700000000+i, i%10, i%100, i%97, i)
		batch[i] = service.NewMessage(doc)
		batch[i].MetaSetMut("kafka_topic", "orders")
		size += len(doc)
	}
	if size /= batchSize; size < 150 || size > 190 {
		tb.Fatal("a document has", size, "bytes")
	}
	return batch
}

// fields are the four of the order in the forms "%s" of an expression.
func fields(tb testing.TB, form string) (*Set, []Slot) {
	s := NewSet()
	at, err := s.Time("event_time", fmt.Sprintf(form, "this.order_ts"), watermark.Second)
	if err != nil {
		tb.Fatal(err)
	}
	slots := []Slot{at}
	for _, name := range []string{"page", "amount", "customer_id"} {
		slot, err := s.Value(name, fmt.Sprintf(form, "this."+name))
		if err != nil {
			tb.Fatal(err)
		}
		slots = append(slots, slot)
	}
	return s, slots
}

// evaluate asks everything of every row.
func evaluate(tb testing.TB, s *Set, f *Frame, slots []Slot, batch service.MessageBatch) {
	s.Eval(batch, f)
	for row := range batch {
		for _, slot := range slots {
			if f.Value(row, slot).IsNull() {
				tb.Fatal(f.Err(row, slot))
			}
		}
	}
}

func perRow(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batchSize), "ns/row")
}

// Four fields of an order, by the ways in which they are found.
func BenchmarkOrder(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		batch := orders(b)
		s, slots := fields(b, "%s")
		var f Frame
		b.ReportAllocs()
		for b.Loop() {
			evaluate(b, s, &f, slots, batch)
		}
		perRow(b)
	})
	b.Run("structured", func(b *testing.B) {
		batch := orders(b)
		for _, msg := range batch {
			_, _ = msg.AsStructured()
		}
		s, slots := fields(b, "%s")
		var f Frame
		b.ReportAllocs()
		for b.Loop() {
			evaluate(b, s, &f, slots, batch)
		}
		perRow(b)
	})
	b.Run("bloblang", func(b *testing.B) {
		batch := orders(b)
		s, slots := fields(b, "(%s)")
		var f Frame
		b.ReportAllocs()
		for b.Loop() {
			forget(batch)
			evaluate(b, s, &f, slots, batch)
		}
		perRow(b)
	})
}

// forget takes the structured form from messages, so that they are parsed again.
func forget(batch service.MessageBatch) {
	for _, msg := range batch {
		doc, _ := msg.AsBytes()
		msg.SetBytes(doc)
	}
}

// BenchmarkReadAgainstBloblang reports how many times faster bytes are read.
func BenchmarkReadAgainstBloblang(b *testing.B) {
	batch := orders(b)
	direct, directSlots := fields(b, "%s")
	through, throughSlots := fields(b, "(%s)")
	var f, g Frame
	var reading, asking time.Duration
	for b.Loop() {
		forget(batch)
		start := time.Now()
		evaluate(b, direct, &f, directSlots, batch)
		middle := time.Now()
		evaluate(b, through, &g, throughSlots, batch)
		reading += middle.Sub(start)
		asking += time.Since(middle)
	}
	b.ReportMetric(float64(asking)/float64(reading), "times")
}

// Conditions on metadata and fields, directly and through Bloblang.
func BenchmarkCondition(b *testing.B) {
	for _, text := range []string{`@kafka_topic == "orders"`, `(@kafka_topic == "orders")`, `this.currency == "EUR"`, `(this.currency == "EUR")`} {
		b.Run(text, func(b *testing.B) {
			batch := orders(b)
			s := NewSet()
			slot, err := s.Bool("when", text)
			if err != nil {
				b.Fatal(err)
			}
			var f Frame
			b.ReportAllocs()
			for b.Loop() {
				forget(batch)
				s.Eval(batch, &f)
				for row := range batch {
					if !f.Bool(row, slot) {
						b.Fatal(f.Err(row, slot))
					}
				}
			}
			perRow(b)
		})
	}
}

// The bare pass over a document, for the size and the shape of documents.
func BenchmarkReader(b *testing.B) {
	for name, doc := range map[string]string{
		"order":      string(must(orders(b)[0].AsBytes())),
		"earthquake": `{"id":"us2000crl8","time":1517365017350,"updated":1517368678040,"net":"us","mag":4.7,"mag_type":"mb","type":"earthquake","status":"reviewed","place":"232km ENE of Raoul Island, New Zealand","longitude":-175.7709,"latitude":-28.3222,"depth_km":10}`,
		"spaced":     "{ \"a\" : 1 , \"order_ts\" : 1700000000 ,\n  \"page\" : \"/x\", \"list\" : [ 1, 2, { \"b\" : null } ] }",
		"note":       `{"note":"` + strings.Repeat("nine hundred letters of prose, ", 29) + `","order_ts":1700000000,"page":"/x","amount":1.75,"customer_id":7}`,
		"note lines": `{"note":"` + strings.Repeat(`nine hundred letters of prose,\n`, 29) + `","order_ts":1700000000,"page":"/x","amount":1.75,"customer_id":7}`,
		"note wide":  `{"note":"` + strings.Repeat(`neunhundert schöne Zeichen Prosa, `, 29) + `","order_ts":1700000000,"page":"/x","amount":1.75,"customer_id":7}`,
		"unicode":    `{"order_ts":1700000000,"page":"/größe/ä","note":"Grüße aus Zürich, schönes Wetter — très bien"}`,
	} {
		b.Run(name, func(b *testing.B) {
			s, _ := fields(b, "%s")
			var r reader
			r.reset(&s.paths)
			spans := make([]span, s.paths.leaves)
			bytes := []byte(doc)
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if !r.read(&s.paths, bytes, spans) {
					b.Fatal(doc)
				}
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
