package watermark

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Frontier follows the partitions of sources and derives the watermark W from them. It
// is not safe for concurrent use: it has one owner.
//
// Rows are observed into a batch; Advance ends it. The rules, in the order in which W is
// looked for:
//
//   - A declared source or partition that has not spoken keeps W where it is, unset as a
//     rule, until IdleTimeout after the start.
//   - While W is unset, a source with undeclared partitions keeps it so for StartupGrace
//     after the source's first row.
//   - Otherwise each source with an active partition contributes the minimum (or
//     maximum) of their largest event times less its delay, and W becomes the minimum of
//     these if that is later.
//   - A partition is idle, no longer active, when its idle time reaches IdleTimeout. That
//     is 0 after a batch with a row of the partition. A batch with rows of others only
//     adds the time since the last batch with any row, but at most half of IdleTimeout:
//     a pause of everything does not idle the partition that speaks second.
//
// Idleness after Flink's WatermarksWithIdleness, with an activity clock in place of its
// timer.
type Frontier struct {
	sources []source
	config  Config

	w     Time
	batch []*partition // that spoke in the current batch
	cache [cacheSize]*partition

	clock clock
	ended bool

	// stuck is the clock at the first batch with rows since W last moved that did not
	// move it; held says whether there is one.
	stuck time.Duration
	held  bool

	changed changes
}

// cacheSize is a power of two: Observe finds the partition of the last rows here.
const cacheSize = 32

// NewFrontier makes a Frontier without a watermark. It panics on a configuration
// without sources or with two of one name, which the caller has refused before.
func NewFrontier(cfg Config, start Clock) *Frontier {
	if len(cfg.Sources) == 0 {
		panic("watermark: NewFrontier without sources: configure at least one")
	}
	cfg.Sources = slices.Clone(cfg.Sources)
	f := &Frontier{config: cfg, w: Unset, sources: make([]source, len(cfg.Sources))}
	names := make(map[string]bool, len(cfg.Sources))
	for i := range cfg.Sources {
		name := cfg.Sources[i].Name
		if names[name] {
			panic(fmt.Sprintf("watermark: NewFrontier with two sources named %q: names are distinct", name))
		}
		names[name] = true
		f.sources[i] = newSource(&cfg.Sources[i], cfg.Policy)
	}
	f.clock = startClock(start)
	return f
}

// Observe adds a valid row to the current batch: its source by its place in
// Config.Sources, its partition ("" where there is one for all) and its event time. W
// does not move before Advance. A time beyond Max counts as Max; Unset is no row.
//
// It is called for every row. It does not keep partition, which may alias a buffer, and
// allocates for a new partition only.
func (f *Frontier) Observe(source int, partition string, t Time) {
	p := f.cache[slot(source, partition)]
	if p == nil || p.source != source || p.name != partition {
		p = f.partition(source, partition)
	}
	if t > p.next {
		if p.next == Unset {
			f.batch = append(f.batch, p)
		}
		p.next = t
	}
}

// slot spreads the partitions that rows alternate between: their names differ in the
// last digits.
func slot(source int, partition string) uint {
	n := len(partition)
	if n == 0 {
		return uint(source) % cacheSize
	}
	h := uint(source)*7 + uint(partition[n-1])
	if n > 1 {
		h += uint(partition[n-2]) * 10
	}
	return h % cacheSize
}

// partition is the slow path of Observe: it finds or makes the partition.
func (f *Frontier) partition(source int, name string) *partition {
	s := &f.sources[source]
	p := s.byName[name]
	if p == nil {
		p = s.add(source, strings.Clone(name))
	}
	f.cache[slot(source, name)] = p
	return p
}

// Advance ends the batch of the observed rows at the time now and moves W: late is W
// before the batch, close is W after it. A batch without observed rows is no arrival and
// keeps W.
func (f *Frontier) Advance(now Clock) (late, close Time) {
	f.clock.read(now)
	late = f.w
	if len(f.batch) == 0 {
		return late, late
	}
	for i := range f.sources {
		f.sources[i].pass(f.clock.quiet, !now.Backlog)
	}
	f.clock.quiet = 0
	for _, p := range f.batch {
		if f.sources[p.source].spoke(p, f.clock.mono) {
			f.changed.add(p)
		}
	}
	f.batch = f.batch[:0]
	f.settle()
	f.judgeHeld(late)
	return late, f.w
}

// Tick says that time has passed without a row. It moves W when a wait has run out or
// the input has ended, and under IdleAdvance in silence, to
//
//	max(W, min(now - delay, newest - delay + silence))
//
// with the newest event time of each source that has an active partition and the minimum
// across these, but not past a wait and not in a backlog. late is W before, close W
// after; they are equal when nothing changed. Rows of an unfinished batch do not count.
func (f *Frontier) Tick(now Clock) (late, close Time) {
	f.clock.read(now)
	late = f.w
	f.settle()
	if f.config.IdleAdvance && !now.Backlog {
		if w, ok := f.silent(); ok {
			f.raise(w)
		}
	}
	if f.w > late {
		f.held = false
	}
	return late, f.w
}

// EndInput says that the input has ended by itself: nothing more will speak, so grace
// and the waits for what is declared are over. The next Tick acts on it.
func (f *Frontier) EndInput() { f.ended = true }

// Watermark is W, Unset before there is one.
func (f *Frontier) Watermark() Time { return f.w }

// settle moves W to what the partitions say now.
func (f *Frontier) settle() {
	if w, ok := f.candidate(); ok {
		f.raise(w)
	}
}

// raise moves W, never back.
func (f *Frontier) raise(w Time) {
	if w > f.w {
		f.w = w
		f.changed.w = true
	}
}

// candidate is what the active partitions make of W; ok is false while something keeps W
// where it is, and when nobody is active.
func (f *Frontier) candidate() (w Time, ok bool) {
	if f.waiting() {
		return Unset, false
	}
	w = EndOfTime
	for i := range f.sources {
		s := &f.sources[i]
		if p := s.head(); p != nil {
			w = min(w, p.time.Add(-s.config.Delay))
			ok = true
		}
	}
	return w, ok
}

// silent is what IdleAdvance makes of W; ok is false when it does not apply.
func (f *Frontier) silent() (w Time, ok bool) {
	if f.clock.quiet <= 0 || f.waiting() {
		return Unset, false
	}
	w = EndOfTime
	for i := range f.sources {
		s := &f.sources[i]
		if s.head() == nil {
			continue
		}
		delay := s.config.Delay
		w = min(w, f.clock.wall.Add(-delay), s.newest.Add(-delay).Add(f.clock.quiet))
		ok = true
	}
	return w, ok
}
