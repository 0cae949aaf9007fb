package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// session is the life of one client: from a connection to a fault after which a
// new client has to begin again, or to the end.
type session struct {
	*reader
	before resume
	shelf  *shelf
	client *kgo.Client

	running context.Context // ends with the session
	stop    context.CancelFunc
	polling context.Context // ends when nothing more is fetched
	halt    context.CancelFunc
	workers sync.WaitGroup

	ending  chan struct{} // closed when the session is being closed
	faulted chan struct{} // closed with the first fault
	once    sync.Once     // writes err
	err     error         // to be read when faulted is closed

	idsMu sync.Mutex              // protects ids
	ids   map[string]kadm.TopicID // of the topics as they were first seen

	foreign foreign // of the last fetch of offsets; the client's goroutine of the group
}

// join connects and begins to consume.
func join(ctx context.Context, r *reader, before resume) (*session, error) {
	s := &session{reader: r, before: before, ending: make(chan struct{}), faulted: make(chan struct{})}
	s.running, s.stop = context.WithCancel(s.stamped(context.Background()))
	s.polling, s.halt = context.WithCancel(s.running)
	var err error
	hook := &brokerHook{nag: r.nag}
	options := append(r.options[:len(r.options):len(r.options)], r.begin(before)...)
	options = append(options, kgo.WithLogger(clientLog{r.log}), kgo.WithHooks(hook))
	if r.group != "" {
		options = append(options, kgo.OnPartitionsAssigned(s.assigned), kgo.OnPartitionsRevoked(s.revoked),
			kgo.OnPartitionsLost(s.lost), kgo.AutoCommitCallback(s.committed),
			kgo.OnOffsetsFetched(s.offsetsFetched), kgo.AdjustFetchOffsetsFn(s.adjust))
	}
	// The client consumes at once; its callbacks find the shelf in place.
	v := &marks{}
	s.shelf = newShelf(r.consumer.shelf, v)
	s.expectAll(r.offsets(before))
	if s.client, err = kgo.NewClient(options...); err != nil {
		s.stop()
		return nil, err
	}
	v.client.Store(s.client)
	if err = hook.ping(ctx, s.client); err != nil {
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

// poll puts what the client fetches onto the shelf until the session ends. Every
// poll, also one that is cut off, keeps rebalances waiting until it allows them.
func (s *session) poll() {
	for s.polling.Err() == nil {
		fetches := s.client.PollFetches(s.polling)
		for _, f := range fetches {
			for _, topic := range f.Topics {
				s.identify(topic.Topic, topic.TopicID)
				for _, p := range topic.Partitions {
					s.put(topic.Topic, p)
				}
			}
		}
		s.client.AllowRebalance()
		s.shelf.makeRoom(s.polling)
	}
}

// put takes what was fetched of a partition.
func (s *session) put(topic string, p kgo.FetchPartition) {
	if p.Err != nil {
		s.failed(topic, p.Partition, p.Err)
	}
	s.missed(topic, p)
	if len(p.Records) > 0 && !s.shelf.put(topic, p.Partition, p.Records, p.HighWatermark) {
		s.log.Debugf("records of %s/%d came in after its loss", topic, p.Partition)
	}
}

// identify finds out by its ID, where the brokers give one, that a topic is not the
// one that was seen before.
func (s *session) identify(topic string, id kadm.TopicID) {
	if id == (kadm.TopicID{}) {
		return
	}
	s.idsMu.Lock()
	before, known := s.ids[topic]
	if !known {
		if s.ids == nil {
			s.ids = map[string]kadm.TopicID{}
		}
		s.ids[topic] = id
	}
	s.idsMu.Unlock()
	if known && id != before {
		s.recreated(topic)
	}
}

// failed says what is wrong with a partition.
func (s *session) failed(topic string, partition int32, err error) {
	var lost *kgo.ErrDataLoss
	var group *kgo.ErrGroupSession
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
	case errors.Is(err, kerr.UnknownTopicID):
		s.recreated(topic)
	case errors.As(err, &lost):
		s.log.Warnf("topic %s: the brokers have lost records of partition %d: %v", topic, partition, err)
	case errors.As(err, &group):
		s.nag.about(fieldGroup+" "+s.group, explain(err))
	case topic == "":
		s.nag.about(fieldBrokers, explain(err))
	case partition < 0:
		s.nag.about(fieldTopics+": "+topic, explain(err))
	default:
		s.nag.about(fmt.Sprintf("topic %s, partition %d", topic, partition), explain(err))
	}
}

// recreated begins anew with a topic that was deleted and created again, which the
// client refuses.
func (s *session) recreated(topic string) {
	s.fail(&rebornError{topic})
}

// rebornError ends a session whose client cannot go on with a topic.
type rebornError struct{ topic string }

func (e *rebornError) Error() string {
	return "topic " + e.topic + " was deleted and created again: it is consumed from its start, and its offsets begin at 0 again"
}

// leave gives what the next session has to know of this one, which has a fault.
func (s *session) leave(before resume) resume {
	left := resume{reborn: maps.Clone(before.reborn)}
	var reborn *rebornError
	if errors.As(s.fault(), &reborn) {
		s.log.Warnf("%v", reborn)
		if left.reborn == nil {
			left.reborn = map[string]bool{}
		}
		left.reborn[reborn.topic] = true
	}
	if s.group == "" {
		left.positions = s.shelf.positions()
		if reborn != nil {
			delete(left.positions, reborn.topic)
		}
	}
	return left
}

// close commits what is acknowledged and ends the client.
func (s *session) close() {
	close(s.ending)
	s.halt()
	s.shelf.freeze(nil)
	s.workers.Wait()
	s.commit(s.running, s.client)
	ctx, cancel := context.WithTimeout(context.Background(), leaveWait)
	defer cancel()
	_ = s.client.LeaveGroupContext(ctx) // the group finds out anyway
	s.client.CloseAllowingRebalance()
	s.shelf.drop(nil)
	s.stop()
}

// How long a commit may take that something waits for, and a farewell to the group.
const (
	commitWait = 5 * time.Second
	leaveWait  = 2 * time.Second
)

// commit commits what is acknowledged.
func (s *session) commit(ctx context.Context, client *kgo.Client) {
	if s.group == "" || len(client.MarkedOffsets()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, commitWait)
	defer cancel()
	if err := client.CommitMarkedOffsets(ctx); err != nil && !passing(err) {
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
			switch err := kerr.ErrorForCode(p.ErrorCode); {
			case errors.Is(err, kerr.UnknownTopicID):
				s.recreated(t.Topic)
			case err != nil && !passing(err):
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
