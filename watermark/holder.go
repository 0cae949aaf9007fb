package watermark

import "time"

// Holder names what holds W back.
type Holder struct {
	Source string
	// Partition is the slowest active partition, or the first declared one that has not
	// spoken ("" where only their number is declared).
	Partition string
	// For is how long rows have come without moving W.
	For time.Duration
	// Spoken is false where Source or Partition is declared and has not spoken yet.
	Spoken bool
	// Missing is the number of declared partitions of Source that have not spoken.
	Missing int
}

// Holder returns what holds W back, and for how long; ok is false when nothing does:
// batches move W, or none came since it moved, or nobody is ahead. It is meant for a log
// line now and then; the remedies are IdleTimeout, or to take what is gone out of the
// declaration.
func (f *Frontier) Holder(now Clock) (h Holder, ok bool) {
	if !f.held {
		return Holder{}, false
	}
	h.For = max(now.Mono-f.stuck, 0)
	for i := range f.sources {
		if s := &f.sources[i]; f.awaits(s) {
			h.Source, h.Partition, h.Missing = s.config.Name, s.firstMissing(), s.missing()
			return h, true
		}
	}
	lead, behind := Unset, EndOfTime
	for i := range f.sources {
		s := &f.sources[i]
		p := s.head()
		if p == nil {
			continue
		}
		delay := s.config.Delay
		if t := p.time.Add(-delay); t < behind {
			behind = t
			h.Source, h.Partition, h.Missing, h.Spoken = s.config.Name, p.name, s.missing(), true
		}
		lead = max(lead, s.newest.Add(-delay))
	}
	// While W is unset a grace holds it; with all beyond W the next Tick moves it.
	if f.w == Unset || lead <= f.w || behind > f.w {
		return Holder{}, false
	}
	return h, true
}

// judgeHeld notes whether a batch with rows moved W.
func (f *Frontier) judgeHeld(before Time) {
	switch {
	case f.w > before:
		f.held = false
	case !f.held:
		f.held = true
		f.stuck = f.clock.mono
	}
}

// firstMissing is the first declared name that has not spoken, or "".
func (s *source) firstMissing() string {
	if s.unknown > 0 {
		for _, name := range s.config.Partitions {
			if p := s.byName[name]; p == nil || p.time == Unset {
				return name
			}
		}
	}
	return ""
}
