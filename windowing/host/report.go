package host

import (
	"fmt"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// holdWarning is how long a partition may hold W back before the log says so.
const holdWarning = time.Minute

// Sizer is implemented by operators that can tell how much they hold.
type Sizer interface {
	// Sizes gives the number of open windows and of groups (or keys) in state.
	Sizes() (windows, groups int)
}

// reporter tells metrics and the log what happens.
type reporter struct {
	meter   Meter
	log     Logger
	name    string
	late    map[string]bool // operators whose first late row was logged
	invalid map[string]bool
	broken  map[string]bool // operators whose first result with an error was logged
	held    map[string]bool
	trimmed bool
}

func newReporter(cfg *Config) reporter {
	return reporter{meter: cfg.Meter, log: cfg.Log, name: cfg.Name,
		late: map[string]bool{}, invalid: map[string]bool{}, broken: map[string]bool{}, held: map[string]bool{}}
}

func (r *reporter) count(name string, n int64, label string) {
	if n != 0 {
		r.meter.Count(name, n, label)
	}
}

// tallies counts what the stages did in a step.
func (r *reporter) tallies(o *owner) {
	for i, st := range o.chain.Stages() {
		if st.Foreign {
			continue
		}
		t := o.chain.TakeTally(i)
		r.count(LateRows, t.Late, st.Name)
		r.count(InvalidRows, t.Invalid, st.Name)
		r.count(DuplicateRows, t.Duplicate, st.Name)
		r.count(RowsEmitted, t.Emitted, st.Name)
		if t.Late > 0 && !r.late[st.Name] {
			r.late[st.Name] = true
			r.log.Warnf("%s: the first late row of %s %q: its event time lies %s behind the watermark. Late rows are counted in %s; a larger delay keeps more of them, `late: pass` sends them on", r.name, st.Kind, st.Name, t.LateBy, LateRows)
		}
		if t.Invalid > 0 && !r.invalid[st.Name] {
			r.invalid[st.Name] = true
			r.log.Warnf("%s: the first invalid row of %s %q: %s. It goes on with this error and enters no state. Invalid rows are counted in %s; handle them with catch or a switch on errored()", r.name, st.Kind, st.Name, brief(t.Cause), InvalidRows)
		}
		if t.Broken != nil && !r.broken[st.Name] {
			r.broken[st.Name] = true
			r.log.Warnf("%s: the first row that %s %q emits with an error: %s. Handle such rows with catch or a switch on errored()", r.name, st.Kind, st.Name, brief(t.Broken))
		}
	}
}

// gauges sets what is looked at now and then.
func (r *reporter) gauges(o *owner) {
	now := o.now()
	for i, st := range o.chain.Stages() {
		if st.Watermark != nil {
			if w := o.chain.Watermark(i); w != watermark.Unset {
				r.meter.Gauge(Watermark, int64(w)/1e6, st.Name)
				r.meter.Gauge(WatermarkLag, int64(now.Wall.Sub(w)/time.Millisecond), st.Name)
			}
			r.holder(o, i, now)
		}
		if s, ok := st.Operator.(Sizer); ok {
			windows, groups := s.Sizes()
			r.meter.Gauge(OpenWindows, int64(windows), st.Name)
			r.meter.Gauge(Groups, int64(groups), st.Name)
		}
	}
	if o.outbox != nil {
		r.meter.Gauge(OutboxRows, int64(o.outbox.unread()+o.outbox.flying), "")
	} else if o.replies.lost > 0 && !r.trimmed {
		r.trimmed = true
		r.log.Warnf("%s: more rows came out within position_horizon than the log for redeliveries holds; should their delivery fail they are lost. Use the windowed input, or deliver faster", r.name)
	}
	if o.config.StateSize != nil {
		if n, err := o.config.StateSize(); err == nil {
			r.meter.Gauge(StateBytes, n, "")
		}
	}
}

// holder names a partition that has held W back for a minute.
func (r *reporter) holder(o *owner, stage int, now watermark.Clock) {
	h, ok := o.chain.Holder(stage, now)
	key := h.Source + "\x00" + h.Partition
	if !ok || h.For < holdWarning || r.held[key] {
		return
	}
	r.held[key] = true
	if !h.Spoken && h.Partition == "" && h.Missing > 0 {
		r.log.Warnf("%s: %d of the partitions that are declared by number (source %q) have not sent a row for %s and hold the watermark back%s: set idle_timeout so that a silent partition is left out, lower the number, or see why they are silent", r.name, h.Missing, h.Source, h.For.Round(time.Second), o.positions.spoken())
		return
	}
	what := "has not moved"
	if !h.Spoken {
		what = "has not sent a row"
	}
	r.log.Warnf("%s: partition %q (source %q) %s for %s and holds the watermark back: set idle_timeout so that a silent partition is left out, or see why it is silent", r.name, h.Partition, h.Source, what, h.For.Round(time.Second))
}

// mostCause is how many characters of an error are logged.
const mostCause = 400

// brief is the text of an error, which may hold a value of any length.
func brief(err error) string {
	text := []rune(fmt.Sprint(err))
	if len(text) > mostCause {
		return string(text[:mostCause]) + "..."
	}
	return string(text)
}
