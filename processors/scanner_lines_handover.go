package processors

import (
	"context"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// linesHandover hands the batches of a linesReader over to the host.
type linesHandover struct {
	*linesReader
	over *Handover
}

// NextBatch implements service.SimpleBatchScanner.
func (r *linesHandover) NextBatch(context.Context) (service.MessageBatch, error) {
	lines, failed, err := r.next(make([][]byte, 0, len(r.lines)))
	if err != nil {
		return nil, err
	}
	r.lines = lines
	if len(failed) > 0 { // an error stands on a message
		return lineMessages(lines, failed), nil
	}
	return r.over.Batch(&Handed{Records: lineRecords(lines)}), nil
}

// lineRecords are lines as records. What their input says of them it says on the
// message that goes in their place.
type lineRecords [][]byte

// Len implements Records.
func (l lineRecords) Len() int { return len(l) }

// Record implements Records.
func (l lineRecords) Record(i int) (payload []byte, offset int64) { return l[i], 0 }

// Describe implements Records.
func (l lineRecords) Describe(int, *service.Message) {}
