package kafka

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// resume is what a session leaves to the one after it.
type resume struct {
	positions map[string]map[int32]int64 // of explicit partitions; -1 where nothing is known
	reborn    map[string]bool            // topics that were deleted and created again
}

// begin says where explicit partitions begin.
func (c *consumer) begin(r resume) []kgo.Opt {
	if len(c.list.partitions) == 0 {
		return nil
	}
	return []kgo.Opt{kgo.ConsumePartitions(c.offsets(r))}
}

// offsets says where explicit partitions begin: where the session before came to,
// else where the configuration says. A topic that was created again begins at its
// start: no offset of the former one means anything.
func (c *consumer) offsets(r resume) map[string]map[int32]kgo.Offset {
	offsets := map[string]map[int32]kgo.Offset{}
	for topic, partitions := range c.list.partitions {
		offsets[topic] = map[int32]kgo.Offset{}
		for p, at := range partitions {
			before, known := r.positions[topic][p]
			switch {
			case known && before >= 0:
				offsets[topic][p] = kgo.NewOffset().At(before)
			case r.reborn[topic]:
				offsets[topic][p] = kgo.NewOffset().AtStart()
			case at == fromStart:
				offsets[topic][p] = c.start
			default:
				offsets[topic][p] = kgo.NewOffset().At(at)
			}
		}
	}
	return offsets
}
