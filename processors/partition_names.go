package processors

import (
	"fmt"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// partitionNames makes the text of a topic and a partition, once for each. The last
// one is at hand: neighbours mostly share it.
type partitionNames struct {
	known map[partitionID]string
	last  partitionID
	name  string // of last, if that is known
}

type partitionID struct{ topic, number agg.Value }

// plain gives the name of a topic and a partition as Kafka inputs set them, if it is
// known.
func (p *partitionNames) plain(topic, number any) (name string, ok bool) {
	t, isText := topic.(string)
	n, isInt := number.(int)
	if !isText || !isInt || len(p.known) == 0 {
		return "", false
	}
	id := partitionID{agg.String(t), agg.Int(int64(n))}
	if id == p.last {
		return p.name, true
	}
	if name, ok = p.known[id]; ok {
		p.last, p.name = id, name
	}
	return name, ok
}

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
