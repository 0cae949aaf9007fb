package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// drainWait bounds how long a rebalance waits for what is in flight.
const drainWait = 10 * time.Second

// assigned makes lanes for partitions. The client calls it between two polls.
func (s *session) assigned(_ context.Context, _ *kgo.Client, of map[string][]int32) {
	for topic, partitions := range of {
		for _, p := range partitions {
			s.shelf.open(topic, p)
		}
	}
	s.tell("%s %s: this member takes over %s", of)
	s.moves.Tell(nil, partitionNames(of))
}

// revoked gives partitions up in good order: nothing more is handed out, what is in
// flight may end, what is acknowledged is committed.
func (s *session) revoked(ctx context.Context, client *kgo.Client, of map[string][]int32) {
	s.shelf.freeze(of)
	if !s.closing() {
		wait, cancel := context.WithTimeout(ctx, min(drainWait, s.rebalance/3))
		_ = s.shelf.drain(wait, of)
		cancel()
		s.commit(ctx, client)
	}
	s.gone(of, "gives up")
}

// lost drops partitions that another member has already, or may have at any time.
func (s *session) lost(_ context.Context, _ *kgo.Client, of map[string][]int32) {
	if names := partitionNames(of); len(names) > 0 && !s.closing() {
		s.log.Warnf("%s %s: the brokers have taken this member as gone, and %s from it: they heard nothing from it for %s of %s, or it did not join again within %s of %s, because the process got no processor time, waited for its output, or was cut off. It joins again by itself. Where it happens again give the process more of the processor and of memory, let it read fewer partitions, or raise %s and %s",
			fieldGroup, s.group, strings.Join(names, ", "), s.reader.session, fieldSession, s.rebalance, fieldRebalance, fieldSession, fieldRebalance)
	}
	s.gone(of, "has lost")
}

func (s *session) gone(of map[string][]int32, how string) {
	for topic, partitions := range of {
		for _, p := range partitions {
			s.lags.Set(0, topic, strconv.Itoa(int(p))) // another member's from now on
		}
	}
	if n := s.shelf.drop(of); n > 0 && !s.closing() {
		s.log.Warnf("%s %s: %d batches of partitions that move were not acknowledged: their messages are delivered again elsewhere", fieldGroup, s.group, n)
	}
	s.tell("%s %s: this member "+how+" %s", of)
	if !s.closing() {
		s.moves.Tell(partitionNames(of), nil)
	}
}

// tell logs partitions that come or go.
func (s *session) tell(format string, of map[string][]int32) {
	if names := partitionNames(of); len(names) > 0 {
		s.log.Infof(format, fieldGroup, s.group, strings.Join(names, ", "))
	}
}

// partitionNames names partitions as the positions of messages do.
func partitionNames(of map[string][]int32) (names []string) {
	for _, topic := range slices.Sorted(maps.Keys(of)) {
		for _, p := range slices.Sorted(slices.Values(of[topic])) {
			names = append(names, partitionName(topic, p))
		}
	}
	return names
}

func partitionName(topic string, partition int32) string {
	return fmt.Sprintf("%s/%d", topic, partition)
}

// closing reports that the input is being closed.
func (s *session) closing() bool {
	select {
	case <-s.ending:
		return true
	default:
		return false
	}
}
