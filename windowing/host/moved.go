package host

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// moved is which partitions of the source another member of its consumer group
// takes over, and which it gives up. They are named as in Position.
type moved struct{ gone, come []string }

// Moved says that partitions of the source go to another member of its consumer
// group, or come: from one, or at the start. State does not move with them: the log says
// what that means for this host, with the number of its open windows, and those that
// stay away soon do not hold the watermark back any more. It may be called from any
// goroutine and returns when the host has heard it, or has ended.
func (h *Host) Moved(gone, come []string) {
	select {
	case h.moves <- moved{gone, come}:
	case <-h.done:
	}
}

// awayGrace is how long a partition that went to another member goes on holding the
// watermark back: should it come back by then, none of its rows is late for it.
const awayGrace = time.Minute

// moved tells the log about partitions that move. A partition that nothing was applied
// of leaves nothing behind.
func (o *owner) moved(m moved) {
	now := o.config.Clock.Mono()
	m.gone = append(m.gone, o.restoredElsewhere(m.come)...)
	var gone, back, anew []string
	for _, name := range m.gone {
		if o.positions.knows(name) {
			gone = append(gone, name)
			o.away[name] = now + awayGrace
		}
	}
	for _, name := range m.come {
		delete(o.away, name)
		o.chain.Back(name)
		if o.positions.knows(name) {
			back = append(back, name)
		} else {
			anew = append(anew, name)
		}
	}
	log, name := o.config.Log, o.config.Name
	if len(gone) > 0 {
		log.Warnf("%s: partitions %s go to another member of the consumer group, their state stays here: %s. What is open comes out here with the rows read so far; the other member counts the rest, under the same windowed_row_key. They hold the watermark back for %s at most, should they come back. Static membership (instance_id) keeps partitions where their state is", name, strings.Join(gone, ", "), o.openState(), awayGrace)
	}
	if len(back) > 0 {
		log.Infof("%s: partitions %s are read here, where their state is; what other members applied of them meanwhile is in their state, not here", name, strings.Join(back, ", "))
	}
	if len(anew) > 0 {
		log.Infof("%s: partitions %s are read here without state: they start at the offsets that the consumer group has committed, and windows that another member has open for them stay with that member", name, strings.Join(anew, ", "))
	}
}

// leaveOut lets partitions that stayed away no longer hold the watermark back. The tick
// that is due then moves it.
func (o *owner) leaveOut(now time.Duration) {
	var left, others []string
	for name, due := range o.away {
		if now < due {
			continue
		}
		delete(o.away, name)
		if o.chain.Away(name) {
			left = append(left, name)
		} else {
			others = append(others, name)
		}
	}
	slices.Sort(left)
	if len(left) > 0 {
		o.config.Log.Warnf("%s: partitions %s have been with another member of the consumer group for %s: they do not hold the watermark back any more", o.config.Name, strings.Join(left, ", "), awayGrace)
	}
	slices.Sort(others)
	if len(others) > 0 {
		o.config.Log.Warnf("%s: partitions %s have been with another member of the consumer group for %s. The partitions of the watermark are others, so what came with them may hold it back: set idle_timeout", o.config.Name, strings.Join(others, ", "), awayGrace)
	}
}

// restoredElsewhere gives the partitions of topics that are shared out for the first
// time in this run, of which there is state here but which did not come: they went to
// another member while nothing ran here. One that comes later is back then.
func (o *owner) restoredElsewhere(come []string) (gone []string) {
	for _, name := range come {
		topic := topicOf(name)
		if o.shared[topic] {
			continue
		}
		o.shared[topic] = true
		for known := range o.positions.parts {
			if topicOf(known) == topic && !slices.Contains(come, known) {
				gone = append(gone, known)
			}
		}
	}
	slices.Sort(gone)
	return gone
}

// topicOf gives the topic of a partition "topic/number".
func topicOf(partition string) string {
	return partition[:max(strings.LastIndexByte(partition, '/'), 0)]
}

// openState says what the operators hold.
func (o *owner) openState() string {
	var parts []string
	for _, st := range o.chain.Stages() {
		if s, ok := st.Operator.(Sizer); ok {
			windows, groups := s.Sizes()
			parts = append(parts, fmt.Sprintf("%s %q holds %d windows, %d groups", st.Kind, st.Name, windows, groups))
		}
	}
	if len(parts) == 0 {
		return "no operator keeps any"
	}
	return strings.Join(parts, ", ")
}

// knows says that a position of a partition was applied.
func (p *positions) knows(partition string) bool { return p.parts[partition] != nil }
