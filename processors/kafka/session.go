package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// session is the life of one client: from a connection to a fault after which a
// new client has to begin again, or to the end.
type session struct {
	*reader
	shelf  *shelf
	client *kgo.Client

	running context.Context // ends with the session
	stop    context.CancelFunc
	workers sync.WaitGroup

	ending  chan struct{} // closed when the session is being closed
	faulted chan struct{} // closed with the first fault
	once    sync.Once     // writes err
	err     error         // to be read when faulted is closed
}

// join connects and begins to consume.
func join(ctx context.Context, r *reader) (*session, error) {
	s := &session{reader: r, ending: make(chan struct{}), faulted: make(chan struct{})}
	s.running, s.stop = context.WithCancel(context.Background())
	var err error
	options := append(r.options[:len(r.options):len(r.options)], kgo.WithLogger(clientLog{r.log}), kgo.WithHooks(brokerHook{r.nag}))
	if r.group != "" {
		options = append(options, kgo.OnPartitionsAssigned(s.assigned), kgo.OnPartitionsRevoked(s.revoked),
			kgo.OnPartitionsLost(s.lost), kgo.AutoCommitCallback(s.committed))
	}
	// The client consumes at once; its callbacks find the shelf in place.
	v := &marks{}
	s.shelf = newShelf(r.consumer.shelf, v)
	if s.client, err = kgo.NewClient(options...); err != nil {
		s.stop()
		return nil, err
	}
	v.client.Store(s.client)
	probe, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	if err = s.client.Ping(probe); err != nil {
		s.close()
		return nil, r.named(err)
	}
	s.workers.Go(s.poll)
	s.workers.Go(s.watch)
	return s, nil
}

// fault is why the session cannot go on, nil while it can.
func (s *session) fault() error {
	select {
	case <-s.faulted:
		return s.err
	default:
		return nil
	}
}

// fail ends the session: the next read says that there is no connection.
func (s *session) fail(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.faulted)
	})
}

// next waits for a batch.
func (s *session) next(ctx context.Context) (*parcel, error) {
	p, err := s.shelf.next(ctx, s.faulted)
	if errors.Is(err, errStopped) {
		return nil, service.ErrNotConnected
	}
	return p, err
}

// poll puts what the client fetches onto the shelf until the session ends.
func (s *session) poll() {
	for s.running.Err() == nil {
		fetches := s.client.PollFetches(s.running)
		if fetches.IsClientClosed() {
			return
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if p.Err != nil {
				s.failed(p.Topic, p.Partition, p.Err)
			}
			if len(p.Records) > 0 && !s.shelf.put(p.Topic, p.Partition, p.Records, p.HighWatermark) {
				s.log.Debugf("records of %s/%d came in after its loss", p.Topic, p.Partition)
			}
		})
		s.client.AllowRebalance()
		s.shelf.makeRoom(s.running)
	}
}

// failed says what is wrong with a partition.
func (s *session) failed(topic string, partition int32, err error) {
	var lost *kgo.ErrDataLoss
	var group *kgo.ErrGroupSession
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
	case errors.Is(err, kerr.UnknownTopicID):
		s.log.Warnf("topic %s was deleted and created again: it is consumed anew, from its start unless start_offset says otherwise; offsets begin at 0 again", topic)
		s.fail(err)
	case errors.As(err, &lost):
		s.log.Warnf("topic %s: the brokers have lost records of partition %d: %v", topic, partition, err)
	case errors.As(err, &group):
		s.nag.about(fieldGroup+" "+s.group, explain(err))
	case partition < 0:
		s.nag.about("topic "+topic, explain(err))
	default:
		s.nag.about(fmt.Sprintf("topic %s, partition %d", topic, partition), explain(err))
	}
}

// close commits what is acknowledged and ends the client.
func (s *session) close() {
	close(s.ending)
	s.shelf.freeze(nil)
	s.commit(context.Background(), s.client)
	s.client.CloseAllowingRebalance()
	s.shelf.drop(nil)
	s.stop()
	s.workers.Wait()
}

// commitWait is how long a commit may take that something waits for.
const commitWait = 10 * time.Second

// commit commits what is acknowledged.
func (s *session) commit(ctx context.Context, client *kgo.Client) {
	if s.group == "" || len(client.MarkedOffsets()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, commitWait)
	defer cancel()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		s.nag.about("commit of "+fieldGroup+" "+s.group, explain(err))
	}
}

// committed hears of the commits that the client makes by itself.
func (s *session) committed(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
	thing := "commit of " + fieldGroup + " " + s.group
	switch {
	case errors.Is(err, context.Canceled):
		return
	case err != nil:
		s.nag.about(thing, explain(err))
		return
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil && !passing(err) {
				s.nag.about(thing+" for topic "+t.Topic, explain(err))
			}
		}
	}
}

// passing reports an error that a rebalance brings and the next commit mends.
func passing(err error) bool {
	for _, known := range []error{kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.UnknownMemberID} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
