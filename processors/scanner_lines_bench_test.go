package processors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
)

// BenchmarkLinesScanner compares the stock scanner with lines_batch, a line an
// operation: what splitting alone costs, without an input around it.
func BenchmarkLinesScanner(b *testing.B) {
	scanners := []struct{ name, conf string }{
		{"lines", "lines: {}"},
		{"lines_batch/batch=1", "lines_batch: {max_batch_size: 1}"},
		{"lines_batch/batch=100", "lines_batch: {max_batch_size: 100}"},
		{"lines_batch/batch=500", "lines_batch: {max_batch_size: 500}"},
		{"lines_batch/batch=1000", "lines_batch: {max_batch_size: 1000}"},
		{"lines_batch/batch=4000", "lines_batch: {max_batch_size: 4000, max_batch_bytes: 1000000}"},
	}
	for _, s := range scanners {
		b.Run(s.name, func(b *testing.B) {
			benchmarkLines(b, s.conf)
		})
	}
}

func benchmarkLines(b *testing.B, conf string) {
	var file bytes.Buffer
	const lines = 10_000
	for i := range lines {
		fmt.Fprintf(&file, `{"order_ts":"2026-01-02T03:04:05.%06dZ","page":"/item/%d","amount":%d.5,"customer_id":%d}`+"\n", i, i%1000, i%90, i%7777)
	}
	b.SetBytes(int64(file.Len() / lines))
	b.ReportAllocs()
	for read := 0; read < b.N; {
		scanner := scannerFor(b, conf, io.NopCloser(bytes.NewReader(file.Bytes())), ignoreAck)
		for {
			batch, ack, err := scanner.NextBatch(b.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			if err := ack(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
			read += len(batch)
		}
	}
}
