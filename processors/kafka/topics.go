package kafka

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// fromStart stands for the offset of a partition that is to be consumed as
// start_offset says.
const fromStart = -1

// topicList is what a list of topics names: whole topics, in their order, and
// single partitions with an offset, fromStart where none is given.
type topicList struct {
	topics     []string
	partitions map[string]map[int32]int64
}

// errMixed refuses what a consumer group cannot do.
var errMixed = errors.New("whole topics and explicit partitions are mixed: give partitions to all topics or to none")

// parseTopics reads a list of topics in four forms: "a", "a:0", "a:0-5" and
// "a:0:1234" (topic, partition, offset). An item may hold several with commas
// between them.
func parseTopics(list []string) (l topicList, err error) {
	seen := map[string]bool{}
	for _, item := range splitList(list) {
		topic, rest, explicit := strings.Cut(item, ":")
		topic = strings.TrimSpace(topic)
		switch {
		case topic == "":
			return l, fmt.Errorf("%q has no topic: use topic, topic:partition, topic:from-to or topic:partition:offset", item)
		case explicit:
			err = l.explicit(topic, rest)
		case !seen[topic]:
			seen[topic] = true
			l.topics = append(l.topics, topic)
		}
		if err != nil {
			return l, fmt.Errorf("%q: %w", item, err)
		}
	}
	if len(l.topics) > 0 && len(l.partitions) > 0 {
		return l, errMixed
	}
	return l, nil
}

// explicit adds the partitions of an item; rest is what follows the topic.
func (l *topicList) explicit(topic, rest string) error {
	span, at, exact := strings.Cut(rest, ":")
	first, last, ranged := strings.Cut(span, "-")
	from, err := parsePartition(first)
	if err != nil {
		return err
	}
	to, offset := from, int64(fromStart)
	if ranged {
		if to, err = parsePartition(last); err != nil {
			return err
		}
		if to < from {
			return fmt.Errorf("the partitions %s run backwards: write the smaller number first", span)
		}
		if to-from >= maxPartitions {
			return fmt.Errorf("the partitions %s are more than %d", span, maxPartitions)
		}
	}
	if exact {
		if ranged {
			return errors.New("an offset goes with one partition only: write topic:partition:offset for each")
		}
		if offset, err = strconv.ParseInt(strings.TrimSpace(at), 10, 64); err != nil || offset < 0 {
			return fmt.Errorf("%q is not an offset: use a number from 0", at)
		}
	}
	return l.add(topic, from, to, offset)
}

// maxPartitions bounds a range, against a slip of the pen.
const maxPartitions = 100_000

func (l *topicList) add(topic string, from, to int32, offset int64) error {
	if l.partitions == nil {
		l.partitions = map[string]map[int32]int64{}
	}
	if l.partitions[topic] == nil {
		l.partitions[topic] = map[int32]int64{}
	}
	for p := int64(from); p <= int64(to); p++ {
		before, twice := l.partitions[topic][int32(p)]
		if twice && before != offset {
			return fmt.Errorf("partition %d is named twice, with different offsets", p)
		}
		l.partitions[topic][int32(p)] = offset
	}
	return nil
}

func parsePartition(text string) (int32, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a partition: use a number from 0 to %d", text, math.MaxInt32)
	}
	return int32(n), nil
}
