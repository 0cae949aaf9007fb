package kafka

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors"
)

// connectWait is how long a connection attempt may take until it counts as failed.
const connectWait = 10 * time.Second

// reader implements service.BatchInput.
type reader struct {
	consumer
	log  *service.Logger
	lags *service.MetricGauge
	nag  *nag
	wait backOffs
	// moves tells the host that the input stands in about partitions that move.
	moves *processors.PartitionMoves
	// over takes batches to the host, nil where messages go the usual way.
	over *processors.Handover

	mu     sync.Mutex // protects what follows
	joined *session   // nil while not connected
	left   resume     // by the session before
	closed bool
}

func newReader(c consumer, res *service.Resources) *reader {
	return &reader{consumer: c, log: res.Logger(), nag: newNag(res.Logger().Errorf),
		lags: res.Metrics().NewGauge("redpanda_lag", "topic", "partition")}
}

// Connect implements service.BatchInput. It fails while no broker answers.
func (r *reader) Connect(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return service.ErrEndOfInput
	case r.joined != nil && r.joined.fault() == nil:
		return nil
	case r.joined != nil:
		r.left = r.joined.leave(r.left)
		r.joined.close()
		r.joined = nil
	}
	s, err := join(ctx, r, r.left)
	if err != nil {
		return service.NewErrBackOff(err, r.wait.next())
	}
	r.wait.reset()
	r.joined = s
	return nil
}

// ReadBatch implements service.BatchInput.
func (r *reader) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	r.mu.Lock()
	s := r.joined
	r.mu.Unlock()
	if s == nil {
		return nil, nil, service.ErrNotConnected
	}
	p, err := s.next(ctx)
	if err != nil {
		return nil, nil, err
	}
	if r.over != nil {
		batch, ack := r.handOver(s, p)
		return batch, ack, nil
	}
	batch := messages(p.records, p.end)
	var index *service.Indexer
	if s.shelf.replay && s.shelf.window == 0 { // a host refuses nothing
		index = batch.Index()
	}
	n := len(batch)
	return batch, func(_ context.Context, err error) error {
		s.shelf.settle(p, refused(n, index, err), time.Now())
		return nil
	}, nil
}

// Close implements service.BatchInput.
func (r *reader) Close(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.joined != nil {
		r.joined.close()
		r.joined = nil
	}
	return nil
}

// backOffs gives the waits between attempts, doubling from one second to ten.
type backOffs struct{ last time.Duration }

func (b *backOffs) next() time.Duration {
	b.last = min(max(2*b.last, time.Second), 10*time.Second)
	return b.last
}

func (b *backOffs) reset() { b.last = 0 }

// marks is the valve of a client.
type marks struct{ client atomic.Pointer[kgo.Client] }

// Mark implements valve.
func (m *marks) Mark(topic string, partition int32, position kgo.EpochOffset) {
	m.client.Load().MarkCommitOffsets(map[string]map[int32]kgo.EpochOffset{topic: {partition: position}})
}

// Pause implements valve.
func (m *marks) Pause(topic string, partition int32, on bool) {
	of := map[string][]int32{topic: {partition}}
	if on {
		m.client.Load().PauseFetchPartitions(of)
	} else {
		m.client.Load().ResumeFetchPartitions(of)
	}
}
