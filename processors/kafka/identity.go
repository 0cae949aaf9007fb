package kafka

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Offsets of a group may outlive their topic: brokers drop them some time after
// the topic, and a restored cluster may still have them. In a topic of the same
// name they mean nothing, and what stands below them would never be read. So a
// commit carries the identity of its topic, as metadata that nobody else reads,
// and an offset of another topic is taken for none.

// identityMark stands before the identity of a topic in the metadata of a commit.
const identityMark = "topic-id:"

// identity writes the ID of a topic for a commit, "" for none.
func identity(id kadm.TopicID) string {
	if id == (kadm.TopicID{}) {
		return ""
	}
	return identityMark + hex.EncodeToString(id[:])
}

// stamped has every commit under a context carry the identities of its topics.
func (s *session) stamped(ctx context.Context) context.Context {
	return kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
		for i := range req.Topics {
			s.idsMu.Lock()
			mark := identity(s.ids[req.Topics[i].Topic])
			s.idsMu.Unlock()
			if mark == "" {
				continue
			}
			for j := range req.Topics[i].Partitions {
				req.Topics[i].Partitions[j].Metadata = &mark
			}
		}
		return nil
	})
}

// foreign are the partitions whose committed offsets belong to another topic of
// the same name.
type foreign map[string]map[int32]bool

func (f foreign) add(topic string, partition int32) {
	if f[topic] == nil {
		f[topic] = map[int32]bool{}
	}
	f[topic][partition] = true
}

// offsetsFetched compares the identities in commits with those of the topics that
// there are now. The client calls it before adjust.
func (s *session) offsetsFetched(ctx context.Context, client *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	s.foreign = foreign{}
	marks := map[string]map[int32]string{}
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				if p.Metadata != nil && strings.HasPrefix(*p.Metadata, identityMark) {
					if marks[t.Topic] == nil {
						marks[t.Topic] = map[int32]string{}
					}
					marks[t.Topic][p.Partition] = *p.Metadata
				}
			}
		}
	}
	if len(marks) == 0 {
		return nil
	}
	now := present(ctx, client, marks)
	for topic, partitions := range marks {
		for p, mark := range partitions {
			if is := identity(now[topic]); is != "" && is != mark {
				s.foreign.add(topic, p)
			}
		}
		if n := len(s.foreign[topic]); n > 0 {
			s.log.Warnf("topic %s was deleted and created again since %s %s committed offsets of it: they are ignored for %d partitions, which begin at their start", topic, fieldGroup, s.group, n)
		}
	}
	return nil
}

// present gives the identities of topics as the brokers have them now. None is
// given where the brokers cannot be asked.
func present[V any](ctx context.Context, client *kgo.Client, topics map[string]V) map[string]kadm.TopicID {
	req := kmsg.NewPtrMetadataRequest()
	for name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	found := map[string]kadm.TopicID{}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return found
	}
	for _, t := range resp.Topics {
		if t.Topic != nil && kerr.ErrorForCode(t.ErrorCode) == nil {
			found[*t.Topic] = t.TopicID
		}
	}
	return found
}

// adjust has partitions begin at their start whose topic was created again: where
// the offset is the former topic's, or where there is none and start_offset would
// pass over what was written until this was noticed.
func (s *session) adjust(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for topic, partitions := range offsets {
		for p, at := range partitions {
			if s.foreign[topic][p] || s.before.reborn[topic] && at == s.start {
				partitions[p] = kgo.NewOffset().AtStart()
			}
		}
	}
	s.expectAll(offsets)
	return offsets, nil
}
