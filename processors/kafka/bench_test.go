package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// benchRecords makes n records of 170 bytes.
func benchRecords(n int) (rs []*kgo.Record) {
	for i := range n {
		rs = append(rs, &kgo.Record{Topic: "orders", Partition: 1, Offset: int64(1_000_000 + i), Key: []byte("key"),
			Value: make([]byte, 167), Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i))})
	}
	return rs
}

// BenchmarkMessages makes messages of records, which is most of what the input
// itself does.
func BenchmarkMessages(b *testing.B) {
	for _, replay := range []bool{false, true} {
		b.Run(fmt.Sprintf("replay=%v", replay), func(b *testing.B) {
			rs := benchRecords(190) // a batch of 32 KB
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				batch := messages(rs, 2_000_000)
				if replay {
					batch.Index()
				}
				n += len(batch)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// unmarked is the valve of nobody.
type unmarked struct{}

func (unmarked) Mark(string, int32, kgo.EpochOffset) {}
func (unmarked) Pause(string, int32, bool)           {}

// BenchmarkShelf puts a fetch of 1 MB and takes it in batches.
func BenchmarkShelf(b *testing.B) {
	s := newShelf(shelfConfig{buffer: 1e6, yield: 32e3, replay: true, direct: true}, unmarked{})
	rs := benchRecords(6000)
	b.ReportAllocs()
	for b.Loop() {
		s.put("orders", 1, rs, 2_000_000)
		for {
			p, _ := s.take(time.Time{})
			if p == nil {
				break
			}
			s.settle(p, nil, time.Time{})
		}
	}
	b.ReportMetric(float64(b.N*len(rs))/b.Elapsed().Seconds(), "messages/s")
}
