package processors

import (
	"fmt"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// partitionNames makes the text of a topic and a partition, once for each.
type partitionNames struct{ known map[partitionID]string }

type partitionID struct{ topic, number agg.Value }

func (p *partitionNames) of(topic, number agg.Value) string {
	id := partitionID{topic, number}
	name, ok := p.known[id]
	if ok {
		return name
	}
	name = fmt.Sprintf("%v/%v", topic.Any(), number.Any())
	if p.known == nil || len(p.known) > 10_000 {
		p.known = map[partitionID]string{}
	}
	p.known[id] = name
	return name
}
