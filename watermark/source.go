package watermark

import "time"

// partition is one partition of one source.
type partition struct {
	name   string
	source int
	time   Time          // the largest event time of ended batches; Unset before the first
	next   Time          // the largest of the current batch; Unset: silent in it
	spoken time.Duration // the source's idle clock at its last batch
	queued bool          // slowest: in the heap
	dirty  bool          // its record is to be written
}

// source is the partitions of one source. Idleness costs nothing per partition: the
// source has one idle clock, a partition remembers where that stood at its last batch,
// and only the partition that decides is ever asked for the difference.
type source struct {
	config *SourceConfig
	byName map[string]*partition
	list   []*partition // that have spoken, in the order in which they first did
	active ranking

	idle    time.Duration // the idle clock
	settled time.Duration // the same at the last batch outside a backlog

	newest  Time          // the largest event time of all
	first   time.Duration // the monotonic clock at the first row of this run
	keyed   bool          // a partition other than "" has spoken
	unknown int           // declared names that have not spoken
	names   map[string]bool
}

// ranking orders the partitions of a source by what they say about W. Partitions that
// are idle may leave it for good; those that speak come back.
type ranking interface {
	// spoke is called after time and spoken of p have been set, for which they only grow.
	spoke(p *partition)
	// head returns the deciding partition among those with spoken > idle, or nil.
	head(idle time.Duration) *partition
}

func newSource(cfg *SourceConfig, policy Policy) source {
	s := source{config: cfg, byName: map[string]*partition{}, newest: Unset}
	s.active = &slowest{}
	if policy == PolicyMax {
		s.active = &fastest{}
	}
	s.names = make(map[string]bool, len(cfg.Partitions))
	for _, name := range cfg.Partitions {
		s.names[name] = true
	}
	s.unknown = len(s.names)
	return s
}

// add makes a partition that has not spoken before this batch.
func (s *source) add(index int, name string) *partition {
	p := &partition{name: name, source: index, time: Unset, next: Unset}
	s.byName[name] = p
	return p
}

// pass moves the idle clock at a batch with rows, of whatever source, by the quiet time
// before it.
func (s *source) pass(quiet time.Duration, settled bool) {
	timeout := s.config.IdleTimeout
	if timeout <= 0 {
		return
	}
	// Half, rounded up so that a timeout of 1 ns can pass.
	s.idle = later(s.idle, min(quiet, timeout-timeout/2))
	if settled {
		s.settled = s.idle
	}
}

// spoke ends the batch for a partition with rows in it; true when its record changed.
func (s *source) spoke(p *partition, mono time.Duration) bool {
	t := min(p.next, Max)
	p.next = Unset
	p.spoken = s.idle
	grown := t > p.time
	if grown {
		s.reach(p, t, mono)
	}
	s.active.spoke(p)
	return grown
}

// reach gives p a later time, its first one perhaps.
func (s *source) reach(p *partition, t Time, mono time.Duration) {
	if p.time == Unset {
		if len(s.list) == 0 {
			s.first = mono
		}
		s.list = append(s.list, p)
		s.keyed = s.keyed || p.name != ""
		if s.names[p.name] {
			s.unknown--
		}
	}
	p.time = t
	s.newest = max(s.newest, t)
}

// head is the active partition that decides about W, nil when none is active.
func (s *source) head() *partition {
	idle := time.Duration(-1) // spoken is never below 0
	if s.config.IdleTimeout > 0 {
		idle = s.settled - s.config.IdleTimeout
	}
	return s.active.head(idle)
}

// missing is the number of declared partitions that have not spoken; of a source without
// declared ones it is 1 before its first row, since the source itself is declared.
func (s *source) missing() int {
	n := max(s.unknown, s.config.PartitionCount-len(s.list))
	if n <= 0 && len(s.list) == 0 {
		return 1
	}
	return max(n, 0)
}
