package host

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// ErrPosition says that a position arrived whose payload is not, or cannot be
// shown to be, what was applied under it before.
var ErrPosition = errors.New("position does not hold what was applied before")

// Position says where a message stands in its source.
type Position struct {
	Partition string
	Offset    int64
	Part      int32  // number among the messages of its batch with this position, set by the host
	Known     bool   // false: the message has no position
	Hash      uint32 // of the payload, see Fingerprint
}

// PositionMode says how positions are used.
type PositionMode uint8

// The modes of positions.
const (
	Offsets PositionMode = iota // offsets of a source that may redeliver
	Ordinal                     // messages counted from 0 by a source that starts at the beginning each time
	None                        // messages have no positions
)

const (
	gapLimit = 100_000 // runs above the mark of a partition, then the oldest gap closes early
	noOffset = math.MinInt64
	remedies = "if the topic was created again, the cluster switched or the file rewritten on purpose, give the host a new name to start with empty state, or delete the state file; otherwise put the old source back"
	// What is read again has to be the same again, also behind a mapping.
	remedyPayload = "if a processor in front makes something else of a message each time, such as now() or uuid_v4(), move that behind the operators; " + remedies
	remedyFar     = "raise position_horizon if the source redelivers that late, " + remedies
)

// positions is the set of applied positions. A position is applied at most once.
type positions struct {
	mode    PositionMode
	horizon time.Duration
	parts   map[string]*partition
	last    *partition // of the last look-up
	dirty   []*partition
	skipped int64
	current *partition // ordinal: the partition being read
	batch   uint64
	blocks  int // of fingerprints, over all partitions
	limit   int // of blocks
}

// partition is what is known of one partition's positions.
type partition struct {
	name  string
	mark  int64 // everything below is applied or given up
	above intervals
	seen  map[int64]time.Duration // by start of a run above the mark: when the gap below it was first seen
	batch partCounter
	parts map[int64]int32 // offsets that were split into more than one message
	print prints

	dirty      bool
	dirtyRuns  map[int64]struct{}
	goneRuns   []int64
	dirtyParts []int64

	// ordinal only: hash and count of this run and of everything applied
	run, applied uint64
	read         int64
}

func newPositions(mode PositionMode, horizon time.Duration) *positions {
	return &positions{mode: mode, horizon: horizon, parts: map[string]*partition{}, limit: blockLimit}
}

func newPartition(name string) *partition {
	return &partition{name: name, mark: noOffset, seen: map[int64]time.Duration{},
		parts: map[int64]int32{}, dirtyRuns: map[int64]struct{}{}, print: newPrints()}
}

func (s *positions) partition(name string) *partition {
	if s.last != nil && s.last.name == name {
		return s.last
	}
	p := s.parts[name]
	if p == nil {
		p = newPartition(strings.Clone(name))
		if s.mode == Ordinal {
			p.mark = 0
		}
		s.parts[name] = p
	}
	s.last = p
	return p
}

// spokenNames is how many partitions spoken names.
const spokenNames = 32

// spoken says which partitions of the source have sent messages, so that one that has
// not can be told.
func (s *positions) spoken() string {
	if s.mode != Offsets || len(s.parts) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(s.parts))
	rest := ""
	if n := len(names) - spokenNames; n > 0 {
		names, rest = names[:spokenNames], fmt.Sprintf(" and %d more", n)
	}
	return ", messages came from " + strings.Join(names, ", ") + rest
}

// begin starts a batch: parts are counted among equal positions of one batch.
func (s *positions) begin() { s.batch++ }

// apply records a position and says whether its message is new. An error means
// that reading must stop.
func (s *positions) apply(pos *Position, now time.Duration) (fresh bool, err error) {
	if !pos.Known {
		return true, nil
	}
	p := s.partition(pos.Partition)
	pos.Partition = p.name // what it was may be a piece of a message
	if s.mode == Ordinal {
		fresh, err = s.ordinal(p, *pos)
	} else {
		pos.Part = p.batch.next(s.batch, pos.Offset)
		before := len(p.print.order)
		fresh, err = p.offset(*pos, now)
		s.blocks += len(p.print.order) - before
	}
	if err == nil && !fresh {
		s.skipped++
	}
	if fresh {
		s.touch(p)
		s.trim()
	}
	return fresh, err
}

// touch notes that a partition has to be saved.
func (s *positions) touch(p *partition) {
	if !p.dirty {
		p.dirty = true
		s.dirty = append(s.dirty, p)
	}
}

// trim forgets fingerprints beyond the bound, of the partition that has most.
func (s *positions) trim() {
	for s.blocks > s.limit {
		var most *partition
		for _, p := range s.parts {
			if most == nil || len(p.print.order) > len(most.print.order) {
				most = p
			}
		}
		if len(most.print.order) <= leastKept {
			return
		}
		most.print.forget()
		s.blocks--
		s.touch(most)
	}
}

// offset applies a position of a source that may redeliver.
func (p *partition) offset(pos Position, now time.Duration) (fresh bool, err error) {
	switch {
	case pos.Offset == math.MaxInt64: // no mark lies above it
		return false, fmt.Errorf("partition %q offset %d: %w: offsets end before %d; set position to an expression that counts", p.name, pos.Offset, ErrPosition, int64(math.MaxInt64))
	case p.has(pos.Offset):
		return p.again(pos)
	case pos.Offset < p.mark:
		return false, fmt.Errorf("partition %q offset %d: %w: it lies below the mark %d and was given up as a gap; %s", p.name, pos.Offset, ErrPosition, p.mark, remedyFar)
	}
	p.add(pos.Offset, now)
	p.print.put(pos.Offset, pos.Hash)
	return true, nil
}

// again judges a position whose offset was applied before: a further part of it
// is new, everything else must be what it was.
func (p *partition) again(pos Position) (fresh bool, err error) {
	if pos.Part >= max(p.parts[pos.Offset], 1) {
		p.parts[pos.Offset] = pos.Part + 1
		p.dirtyParts = append(p.dirtyParts, pos.Offset)
		return true, nil
	}
	if pos.Part > 0 {
		return false, nil
	}
	switch known, ok := p.print.get(pos.Offset); {
	case !ok:
		return false, fmt.Errorf("partition %q offset %d: %w: it was applied too long ago to be checked (mark %d); %s", p.name, pos.Offset, ErrPosition, p.mark, remedyFar)
	case known != pos.Hash:
		return false, fmt.Errorf("partition %q offset %d: %w: another payload was applied under it; %s", p.name, pos.Offset, ErrPosition, remedyPayload)
	}
	return false, nil
}

// has says whether an offset is applied.
func (p *partition) has(off int64) bool {
	if off < p.mark {
		_, ok := p.print.get(off)
		return ok || p.print.forgot(off) // what is too old to tell counts as applied, and is then refused
	}
	return p.above.has(off)
}

// add records an offset at or above the mark.
func (p *partition) add(off int64, now time.Duration) {
	if off == p.mark && len(p.above) == 0 {
		p.mark++
		return
	}
	set, run, fresh, gone := p.above.add(off)
	p.above = set
	if fresh {
		p.seen[run.from] = now
	}
	for _, from := range gone {
		if at, ok := p.seen[from]; ok && run.from == off {
			p.seen[run.from] = at
		}
		delete(p.seen, from)
		delete(p.dirtyRuns, from)
		p.goneRuns = append(p.goneRuns, from)
	}
	p.dirtyRuns[run.from] = struct{}{}
	if p.above[0].from == p.mark {
		p.raise()
	}
}

// raise lets the mark pass the first run.
func (p *partition) raise() {
	run := p.above[0]
	p.mark = run.to
	p.above = p.above[1:]
	delete(p.seen, run.from)
	delete(p.dirtyRuns, run.from)
	p.goneRuns = append(p.goneRuns, run.from)
}

// closeGaps gives up the gaps that were seen horizon ago: what lies in them was
// never sent (a compacted topic, a transaction marker) or lost at the source.
func (s *positions) closeGaps(now time.Duration) {
	for _, p := range s.parts {
		for len(p.above) > 0 && (now-p.seen[p.above[0].from] >= s.horizon || len(p.above) > gapLimit) {
			p.raise()
			s.touch(p)
		}
	}
}

// ordinal applies a position of a source that starts at the beginning each time.
func (s *positions) ordinal(p *partition, pos Position) (fresh bool, err error) {
	if s.current != nil && s.current != p {
		if err := s.current.ended(); err != nil {
			return false, err
		}
	}
	s.current = p
	p.read++
	p.run = chainHash(p.run, pos.Hash)
	if p.read <= p.mark {
		if p.read == p.mark && p.run != p.applied {
			return false, fmt.Errorf("%s: %w: the %d messages applied before have other payloads now; %s", p.title(), ErrPosition, p.mark, remedyPayload)
		}
		return false, nil
	}
	p.mark, p.applied = p.read, p.run
	return true, nil
}

// ended checks an ordinal partition that was read again to its end.
func (p *partition) ended() error {
	if p.read > 0 && p.read < p.mark {
		return fmt.Errorf("%s: %w: it ends after %d messages, %d were applied before; %s", p.title(), ErrPosition, p.read, p.mark, remedies)
	}
	return nil
}

func (p *partition) title() string {
	if p.name == "" {
		return "position ordinal: the input"
	}
	return fmt.Sprintf("position ordinal: path %q", p.name)
}

// end checks what was read to the natural end of the input.
func (s *positions) end() error {
	if s.mode != Ordinal || s.current == nil {
		return nil
	}
	return s.current.ended()
}

// chainHash folds the hash of one more payload into a running one.
func chainHash(running uint64, payload uint32) uint64 {
	return (running^uint64(payload))*0x9E3779B97F4A7C15 + 1
}
