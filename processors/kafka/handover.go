package kafka

import (
	"context"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors"
)

// Batches that are handed over: nobody but the host sees how large they are.
const (
	handedBytes   = 256 << 10
	handedRecords = 2048
)

// handOver sets the limits of a shelf whose batches are handed over to a host. The
// host bounds how much it takes before it acknowledges, and lets go of records long
// before, so that the shelf need not count what is in flight.
func (c *shelfConfig) handOver() {
	c.window = math.MaxInt
	c.yield = max(c.yield, min(c.buffer, handedBytes))
	c.most = handedRecords
}

// handed are records on their way into a host. It implements processors.Records.
type handed struct {
	records []*kgo.Record
	*described
}

// Len implements processors.Records.
func (h *handed) Len() int { return len(h.records) }

// Record implements processors.Records.
func (h *handed) Record(i int) (payload []byte, offset int64) {
	return h.records[i].Value, h.records[i].Offset
}

// Describe implements processors.Records.
func (h *handed) Describe(i int, m *service.Message) { h.describe(h.records[i], m) }

// handOver gives what goes to the host for a parcel, which lets go of its records.
// They are in the host's hands alone then, which does not refuse them; should it
// happen, the next session begins again behind what is acknowledged.
func (r *reader) handOver(s *session, p *parcel) (service.MessageBatch, service.AckFunc) {
	last := p.records[len(p.records)-1]
	batch := r.over.Batch(&processors.Handed{Partition: partitionName(last.Topic, last.Partition), Lag: last.Offset+1 < p.end,
		Records: &handed{p.records, describe(last, p.end)}})
	p.records = nil
	return batch, func(_ context.Context, err error) error {
		if err != nil {
			s.fail(err)
			return nil
		}
		s.shelf.settle(p, nil, time.Now())
		return nil
	}
}
