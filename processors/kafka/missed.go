package kafka

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Where a broker does not have the offset that is asked for, the client begins
// elsewhere without a word. Offsets that are not there need not be a loss: compacted
// records and the markers of transactions are gaps too. Those before the start of the
// log are: the topic has dropped them.

// expect says with which offset a partition goes on. What is below 0 stands for its
// start or its end.
func (s *shelf) expect(topic string, partition int32, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[topic][partition]
	if l == nil && s.direct && at >= 0 {
		l = s.opened(topic, partition)
	}
	if l != nil && at >= 0 {
		l.next = at
	}
}

// expected is the offset with which a partition goes on, unknown where that is not
// known.
func (s *shelf) expected(topic string, partition int32) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lanes[topic][partition]; l != nil {
		return l.next
	}
	return unknown
}

// unknown stands for an offset.
const unknown = -1

// expectAll takes the offsets with which partitions begin.
func (s *session) expectAll(offsets map[string]map[int32]kgo.Offset) {
	for topic, partitions := range offsets {
		for p, at := range partitions {
			s.shelf.expect(topic, p, at.EpochOffset().Offset)
		}
	}
}

// missed says that what was fetched does not go on where it should.
func (s *session) missed(topic string, p kgo.FetchPartition) {
	want := s.shelf.expected(topic, p.Partition)
	if want == unknown || len(p.Records) == 0 {
		return
	}
	first := p.Records[0].Offset
	thing := fmt.Sprintf("topic %s, partition %d", topic, p.Partition)
	switch {
	case first < want:
		s.nag.about(thing, fmt.Errorf("offset %d, where it should go on, is past the end of the partition, which goes on at %d: correct the offset in topics, or that of consumer_group, or find out what the brokers have lost", want, first))
	case first > want && p.LogStartOffset > want:
		s.nag.about(thing, fmt.Errorf("offsets %d to %d are gone: the topic dropped them before they were read, and what they held is not counted (raise retention.ms and retention.bytes of the topic, or see why the pipeline is behind)", want, p.LogStartOffset-1))
	}
}
