package watermark

import "time"

// AdvanceStep is the resolution of Deadline where W would move at any moment.
const AdvanceStep = 100 * time.Millisecond

// waiting reports whether a declared source or partition, or a startup grace, keeps W
// where it is.
func (f *Frontier) waiting() bool {
	for i := range f.sources {
		s := &f.sources[i]
		if f.awaits(s) || f.graceEnd(s) > f.clock.mono {
			return true
		}
	}
	return false
}

// awaits reports whether something of s that is declared has not spoken and is still
// waited for. Once W is set, a source that has not spoken holds it, as does a partition
// under PolicyMin: it stands for one that is infinitely far behind. Under PolicyMax such
// a partition has no say.
func (f *Frontier) awaits(s *source) bool {
	if f.ended || s.missing() == 0 {
		return false
	}
	if timeout := s.config.IdleTimeout; timeout > 0 && f.clock.runSettled >= timeout {
		return false
	}
	return len(s.list) == 0 || f.w == Unset || f.config.Policy == PolicyMin
}

// graceEnd is the monotonic time at which the startup grace of s ends, the present one
// or earlier when there is none.
func (f *Frontier) graceEnd(s *source) time.Duration {
	grace := f.config.StartupGrace
	if grace < 0 {
		grace = 0
		if s.keyed {
			grace = DefaultStartupGrace
		}
	}
	if f.ended || f.w != Unset || s.config.declared() || len(s.list) == 0 || grace == 0 {
		return f.clock.mono
	}
	return later(s.first, grace)
}

// Deadline is the earliest monotonic time at which a Tick could move W, if no row comes
// and no backlog begins or ends before: the end of the last wait, AdvanceStep from now
// under IdleAdvance, now after EndInput. ok is false when only rows can move it. It is
// meant for a timer; ask again after every Advance and Tick.
func (f *Frontier) Deadline() (mono time.Duration, ok bool) {
	now := f.clock.mono
	mono = now
	waits, spoken := false, false
	for i := range f.sources {
		s := &f.sources[i]
		spoken = spoken || len(s.list) > 0
		mono = max(mono, f.graceEnd(s))
		if !f.awaits(s) {
			continue
		}
		timeout := s.config.IdleTimeout
		if timeout <= 0 {
			return 0, false
		}
		waits = true
		mono = max(mono, later(now, timeout-f.clock.run))
	}
	switch {
	case !spoken:
		return 0, false
	case mono > now:
		return mono, true
	case waits:
		// The time is up, but a backlog does not let it run out.
		return later(now, AdvanceStep), true
	}
	if w, ok := f.candidate(); ok && w > f.w {
		return now, true
	}
	return f.advanceDeadline()
}

// advanceDeadline is the time at which IdleAdvance moves W next.
func (f *Frontier) advanceDeadline() (time.Duration, bool) {
	if !f.config.IdleAdvance || f.w >= Max {
		return 0, false
	}
	// W moves once both bounds of every source are past it.
	left, ok := AdvanceStep, false
	for i := range f.sources {
		s := &f.sources[i]
		if s.head() == nil {
			continue
		}
		delay := s.config.Delay
		bound := min(f.clock.wall.Add(-delay), s.newest.Add(-delay).Add(f.clock.quiet))
		left = max(left, f.w.Sub(bound))
		ok = true
	}
	return later(f.clock.mono, left), ok
}
