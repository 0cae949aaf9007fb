package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// watch looks after the topics and the lag now and then.
func (s *session) watch() {
	admin := kadm.NewClient(s.client)
	s.look()
	tick := time.NewTicker(s.lag)
	defer tick.Stop()
	for {
		select {
		case <-s.polling.Done():
			return
		case <-s.faulted:
			return
		case <-tick.C:
			s.look()
			s.measure(admin)
		}
	}
}

// topicNames gives the topics that the configuration names.
func (c *consumer) topicNames() []string {
	names := append([]string(nil), c.list.topics...)
	for topic := range c.list.partitions {
		names = append(names, topic)
	}
	return names
}

// look says which topics do not exist or cannot be seen, for which the client waits
// without a word, and finds out which were deleted and created again.
func (s *session) look() {
	names := map[string]bool{}
	for _, name := range s.topicNames() {
		names[name] = true
	}
	for name := range s.shelf.positions() {
		names[name] = true
	}
	if len(names) == 0 {
		return
	}
	req := kmsg.NewPtrMetadataRequest()
	for name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	ctx, cancel := context.WithTimeout(s.polling, s.lag+time.Second)
	defer cancel()
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return // the hook has said it
	}
	for _, t := range resp.Topics {
		if t.Topic != nil {
			s.seen(*t.Topic, t.TopicID, kerr.ErrorForCode(t.ErrorCode))
			s.absent(*t.Topic, len(t.Partitions))
		}
	}
}

// absent says which explicit partitions a topic does not have, which has n.
func (s *session) absent(topic string, n int) {
	for p := range s.list.partitions[topic] {
		if n > 0 && int(p) >= n {
			s.nag.about(fmt.Sprintf("%s: %s:%d", fieldTopics, topic, p), fmt.Errorf("the topic has no such partition, only 0 to %d: correct the number, or add partitions", n-1))
		}
	}
}

// seen takes what the brokers say of a topic.
func (s *session) seen(name string, id kadm.TopicID, err error) {
	switch {
	case err == nil:
		s.identify(name, id)
	case !kerr.IsRetriable(err) || errors.Is(err, kerr.UnknownTopicOrPartition):
		s.nag.about(fieldTopics+": "+name, explain(err))
	}
}

// measure updates the lag: what the partitions hold behind the position that is
// acknowledged.
func (s *session) measure(admin *kadm.Client) {
	positions := s.shelf.positions()
	if len(positions) == 0 {
		return
	}
	topics := make([]string, 0, len(positions))
	for topic := range positions {
		topics = append(topics, topic)
	}
	ctx, cancel := context.WithTimeout(s.polling, s.lag+time.Second)
	defer cancel()
	ends, err := admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return
	}
	committed := s.client.CommittedOffsets()
	for topic, of := range positions {
		for partition, at := range of {
			end, ok := ends.Lookup(topic, partition)
			if before, known := committed[topic][partition]; at < 0 && known {
				at = before.Offset
			}
			if ok && end.Err == nil && at >= 0 {
				s.lags.Set(max(end.Offset-at, 0), topic, strconv.Itoa(int(partition)))
			}
		}
	}
}

// positions gives the position of each partition, -1 where nothing is known.
func (s *shelf) positions() map[string]map[int32]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]map[int32]int64{}
	s.each(nil, func(l *lane) {
		if found[l.topic] == nil {
			found[l.topic] = map[int32]int64{}
		}
		found[l.topic][l.partition] = l.position()
	})
	return found
}
