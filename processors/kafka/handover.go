package kafka

import (
	"context"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"
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

// handed are records on their way into a host. It implements processors.Handed.
type handed struct {
	records []*kgo.Record
	end     int64
}

// Messages implements processors.Handed.
func (h *handed) Messages() service.MessageBatch { return messages(h.records, h.end) }

// Lag implements processors.Handed.
func (h *handed) Lag() bool { return h.records[len(h.records)-1].Offset+1 < h.end }

// handOver gives what goes to the host for a parcel, which lets go of its records.
// They are in the host's hands alone then, which does not refuse them; should it
// happen, the next session begins again behind what is acknowledged.
func (r *reader) handOver(s *session, p *parcel) (service.MessageBatch, service.AckFunc) {
	batch := r.over.Batch(&handed{p.records, p.end}, len(p.records))
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
