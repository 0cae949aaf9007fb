package host

import (
	"fmt"
	"strings"
)

// moved is which partitions of the source another member of its consumer group
// takes over, and which it gives up. They are named as in Position.
type moved struct{ gone, come []string }

// Moved says that partitions of the source go to another member of its consumer
// group, or come from one. State does not move with them: the log says what that
// means for this host, with the number of its open windows. It may be called from
// any goroutine and returns when the host has heard it, or has ended.
func (h *Host) Moved(gone, come []string) {
	select {
	case h.moves <- moved{gone, come}:
	case <-h.done:
	}
}

// moved tells the log about partitions that move. A partition that nothing was
// applied of leaves nothing behind.
func (o *owner) moved(m moved) {
	var gone, back, anew []string
	for _, name := range m.gone {
		if o.positions.knows(name) {
			gone = append(gone, name)
		}
	}
	for _, name := range m.come {
		if o.positions.knows(name) {
			back = append(back, name)
		} else {
			anew = append(anew, name)
		}
	}
	log, name := o.config.Log, o.config.Name
	if len(gone) > 0 {
		log.Warnf("%s: partitions %s go to another member of the consumer group, their state stays here: %s. What is open comes out here with the rows read so far; the other member counts the rest, under the same windowed_row_key. Until they come back they hold the watermark back, unless idle_timeout leaves them out. Static membership (instance_id) keeps partitions where their state is", name, strings.Join(gone, ", "), o.openState())
	}
	if len(back) > 0 {
		log.Infof("%s: partitions %s are read here, where their state is; what other members applied of them meanwhile is in their state, not here", name, strings.Join(back, ", "))
	}
	if len(anew) > 0 {
		log.Infof("%s: partitions %s are read here without state: they start at the offsets that the consumer group has committed, and windows that another member has open for them stay with that member", name, strings.Join(anew, ", "))
	}
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
