package watermark

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// model is the rules of Frontier, written down again without a thought for speed: every
// partition carries its idle time, and everybody is looked at every time.
type model struct {
	cfg        Config
	w          Time
	partitions []*modelPartition
	batch      map[*modelPartition]Time

	last, start Clock
	quiet       time.Duration // since the last row, without backlogs
	run         time.Duration // since the start, without backlogs
	expired     []bool        // sources whose idle timeout after the start is over
	first       []time.Duration
	spoken      []bool
	ended       bool
}

type modelPartition struct {
	source int
	name   string
	time   Time
	idle   time.Duration
	active bool
}

func newModel(cfg Config, start Clock) *model {
	n := len(cfg.Sources)
	return &model{
		cfg: cfg, w: Unset, last: start, start: start, batch: map[*modelPartition]Time{},
		expired: make([]bool, n), first: make([]time.Duration, n), spoken: make([]bool, n),
	}
}

func (m *model) observe(source int, name string, t Time) {
	var p *modelPartition
	for _, known := range m.partitions {
		if known.source == source && known.name == name {
			p = known
		}
	}
	if p == nil {
		p = &modelPartition{source: source, name: name, time: Unset}
		m.partitions = append(m.partitions, p)
	}
	if old, ok := m.batch[p]; !ok || t > old {
		m.batch[p] = t
	}
}

func (m *model) clock(now Clock) {
	if !m.last.Backlog {
		m.quiet += now.Mono - m.last.Mono
		m.run += now.Mono - m.last.Mono
	}
	m.last = now
	for i, s := range m.cfg.Sources {
		if s.IdleTimeout > 0 && m.run >= s.IdleTimeout && !now.Backlog {
			m.expired[i] = true
		}
	}
}

func (m *model) advance(now Clock) (late, close Time) {
	m.clock(now)
	if len(m.batch) == 0 {
		return m.w, m.w
	}
	for _, p := range m.partitions {
		timeout := m.cfg.Sources[p.source].IdleTimeout
		if t, ok := m.batch[p]; ok {
			p.time = max(p.time, t)
			p.idle, p.active = 0, true
			if !m.spoken[p.source] {
				m.spoken[p.source] = true
				m.first[p.source] = now.Mono
			}
			continue
		}
		p.idle += min(m.quiet, (timeout+1)/2)
		if timeout > 0 && p.idle >= timeout && !now.Backlog {
			p.active = false
		}
	}
	m.quiet = 0
	clear(m.batch)
	late = m.w
	m.settle()
	return late, m.w
}

func (m *model) tick(now Clock) (late, close Time) {
	m.clock(now)
	late = m.w
	m.settle()
	if m.cfg.IdleAdvance && m.quiet > 0 && !now.Backlog && !m.holding() {
		bound, ok := EndOfTime, false
		for i, s := range m.cfg.Sources {
			newest, active := Unset, false
			for _, p := range m.partitions {
				if p.source == i {
					newest = max(newest, p.time)
					active = active || p.active
				}
			}
			if active {
				ok = true
				bound = min(bound, now.Wall.Add(-s.Delay), newest.Add(-s.Delay).Add(m.quiet))
			}
		}
		if ok {
			m.w = max(m.w, bound)
		}
	}
	return late, m.w
}

// holding reports whether a wait or a grace keeps W where it is.
func (m *model) holding() bool {
	for i, s := range m.cfg.Sources {
		missing, known, keyed := 0, 0, false
		for _, name := range s.Partitions {
			found := false
			for _, p := range m.partitions {
				found = found || p.source == i && p.name == name && p.time != Unset
			}
			if !found {
				missing++
			}
		}
		for _, p := range m.partitions {
			if p.source == i && p.time != Unset {
				known++
				keyed = keyed || p.name != ""
			}
		}
		missing = max(missing, s.PartitionCount-known)
		if !m.ended && !m.expired[i] {
			if known == 0 {
				return true
			}
			if missing > 0 && (m.w == Unset || m.cfg.Policy == PolicyMin) {
				return true
			}
		}
		grace := m.cfg.StartupGrace
		if grace < 0 && keyed {
			grace = 5 * time.Second
		}
		undeclared := len(s.Partitions) == 0 && s.PartitionCount == 0
		if !m.ended && m.w == Unset && undeclared && known > 0 && m.last.Mono-m.first[i] < grace {
			return true
		}
	}
	return false
}

func (m *model) settle() {
	if m.holding() {
		return
	}
	total, ok := EndOfTime, false
	for i, s := range m.cfg.Sources {
		best, found := Unset, false
		for _, p := range m.partitions {
			if p.source != i || !p.active {
				continue
			}
			t := p.time.Add(-s.Delay)
			if !found || (m.cfg.Policy == PolicyMin && t < best) || (m.cfg.Policy == PolicyMax && t > best) {
				best, found = t, true
			}
		}
		if found {
			total, ok = min(total, best), true
		}
	}
	if ok {
		m.w = max(m.w, total)
	}
}

func (m *model) restart(cfg Config, now Clock) *model {
	next := newModel(cfg, now)
	next.w = m.w
	for _, p := range m.partitions {
		if p.time == Unset {
			continue
		}
		next.partitions = append(next.partitions, &modelPartition{p.source, p.name, p.time, 0, true})
		next.spoken[p.source] = true
		next.first[p.source] = now.Mono
	}
	return next
}

// TestFrontierAgreesWithTheModel runs random configurations through random batches,
// silences, backlogs, wall clock steps, ends of input and restarts.
func TestFrontierAgreesWithTheModel(t *testing.T) {
	r := seeded(t)
	for run := range 2000 {
		runModel(t, rand.New(rand.NewPCG(r.Uint64(), uint64(run))))
	}
}

func anyConfig(r *rand.Rand) Config {
	cfg := Config{
		Policy:       Policy(r.IntN(2)),
		StartupGrace: []time.Duration{-1, 0, 3 * time.Second}[r.IntN(3)],
		IdleAdvance:  r.IntN(4) == 0,
	}
	for i := range 1 + r.IntN(3) {
		s := SourceConfig{Name: fmt.Sprint("s", i), Delay: time.Duration(r.IntN(3)) * 5}
		if r.IntN(3) > 0 {
			s.IdleTimeout = time.Duration(1+r.IntN(10)) * time.Second
		}
		switch r.IntN(4) {
		case 0:
			s.Partitions = []string{"p0", "p1", "p3"}[:1+r.IntN(3)]
		case 1:
			s.PartitionCount = 1 + r.IntN(4)
		}
		cfg.Sources = append(cfg.Sources, s)
	}
	return cfg
}

func runModel(t *testing.T, r *rand.Rand) {
	cfg := anyConfig(r)
	now := Clock{Wall: 1000 * second, Mono: time.Duration(r.IntN(1000))}
	f, m := NewFrontier(cfg, now), newModel(cfg, now)
	records := map[string][]byte{}
	names := []string{"", "p0", "p1", "p2", "p3"}[r.IntN(2):]
	for step := range 60 {
		pass := time.Duration(r.IntN(4)) * time.Second / 2
		if r.IntN(15) == 0 {
			pass = time.Hour
		}
		now.Mono += pass
		now.Wall = now.Wall.Add(pass)
		now.Backlog = r.IntN(5) == 0
		steady := now.Backlog == m.last.Backlog
		deadline, due := f.Deadline()
		w := f.Watermark()
		what := "batch"
		var late, close, wantLate, wantClose Time
		switch r.IntN(12) {
		case 0:
			what = "end and tick"
			f.EndInput()
			m.ended = true
			fallthrough
		case 1, 2, 3:
			late, close = f.Tick(now)
			wantLate, wantClose = m.tick(now)
			if close > late && what == "batch" && steady && !cfg.IdleAdvance {
				require.True(t, due && now.Mono >= deadline, "Tick at %s moved W before the deadline %s %v", now.Mono, deadline, due)
			}
			if late == Unset && due && now.Mono >= deadline && steady && !now.Backlog {
				require.Greater(t, close, Unset, "the deadline was of no use")
			}
		case 4:
			what = "restart"
			now.Wall = now.Wall.Add(time.Duration(r.IntN(7)-3) * time.Hour)
			f = restartFrontier(t, r, f, cfg, now, records)
			m = m.restart(cfg, now)
			late, close = w, f.Watermark()
			wantLate, wantClose = m.w, m.w
		default:
			for range r.IntN(4) {
				source, name := r.IntN(len(cfg.Sources)), names[r.IntN(len(names))]
				at := Time(step*10 + r.IntN(60) - 30)
				f.Observe(source, name, at)
				m.observe(source, name, at)
			}
			late, close = f.Advance(now)
			wantLate, wantClose = m.advance(now)
		}
		require.Equal(t, [2]Time{wantLate, wantClose}, [2]Time{late, close}, "step %d, %s, of %+v", step, what, cfg)
		require.Equal(t, w, late)
		require.GreaterOrEqual(t, close, late)
		require.Equal(t, close, f.Watermark())
		checkHolder(t, f, m, now)
	}
}

// restartFrontier restores by one of the two ways.
func restartFrontier(t *testing.T, r *rand.Rand, f *Frontier, cfg Config, now Clock, records map[string][]byte) *Frontier {
	next := NewFrontier(cfg, now)
	state := f.AppendState(nil)
	f.WriteChanges(func(key, value []byte) { records[string(key)] = value })
	if r.IntN(2) == 0 {
		require.NoError(t, next.Restore(state, now))
		require.Equal(t, state, next.AppendState(nil))
		return next
	}
	for key, value := range records {
		require.NoError(t, next.RestoreRecord([]byte(key), value))
	}
	require.Len(t, next.AppendState(nil), len(state))
	return next
}

// checkHolder: what is named to hold W back has not spoken, or is not ahead of W.
func checkHolder(t *testing.T, f *Frontier, m *model, now Clock) {
	h, ok := f.Holder(now)
	if !ok {
		return
	}
	require.GreaterOrEqual(t, h.For, time.Duration(0))
	for _, p := range m.partitions {
		s := m.cfg.Sources[p.source]
		if s.Name != h.Source || p.name != h.Partition || !h.Spoken {
			continue
		}
		require.True(t, p.active)
		require.LessOrEqual(t, p.time.Add(-s.Delay), f.Watermark())
		return
	}
	require.False(t, h.Spoken)
	require.Positive(t, h.Missing)
}
