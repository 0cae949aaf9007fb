package watermark

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const second = Time(time.Second)

// A second watermark in a chain is a Frontier of its own over the rows of the first
// window, whose event time is the last nanosecond of their window.
func TestChainedFrontiers(t *testing.T) {
	var clock Clock
	cfg := Config{Sources: []SourceConfig{{}}}
	first, next := NewFrontier(cfg, clock), NewFrontier(cfg, clock)
	const size = 10 * time.Second
	open := map[Time]bool{}
	sums := map[Time]int{}
	var got []string
	for batch, at := range []Time{1 * second, 12 * second, 25 * second, 45 * second} {
		first.Observe(0, "", at)
		open[at.Floor(size, 0)] = true
		_, close := first.Advance(clock)
		before := next.Watermark()
		for start := range open {
			end := start.Add(size)
			if end > close {
				continue
			}
			delete(open, start)
			row := end - 1
			next.Observe(0, "", row)
			outer := row.Floor(2*size, 0)
			require.Greater(t, outer.Add(2*size), before, "the second step drops nothing")
			sums[outer]++
		}
		_, close = next.Advance(clock)
		for start, sum := range sums {
			if start.Add(2*size) <= close {
				got = append(got, fmt.Sprintf("after %d: %s sum %d", batch+1, start, sum))
				delete(sums, start)
			}
		}
	}
	require.Equal(t, []string{"after 4: 1970-01-01T00:00:00Z sum 2"}, got)
	require.Equal(t, 30*second-1, next.Watermark())
}

// The text of a partition may be in a buffer that the caller reuses.
func TestObserveDoesNotKeepThePartition(t *testing.T) {
	f := NewFrontier(Config{Sources: []SourceConfig{{}}}, Clock{})
	text := []byte("p0")
	f.Observe(0, string(text), 5)
	state := func() string { f.Advance(Clock{}); return string(f.AppendState(nil)) }
	before := state()
	text[1] = '1'
	require.Equal(t, before, state())
	require.Contains(t, before, "p0")
}

func TestObserveLimits(t *testing.T) {
	f := NewFrontier(Config{Sources: []SourceConfig{{Delay: time.Hour}}}, Clock{})
	f.Observe(0, "", Unset)
	late, close := f.Advance(Clock{})
	require.Equal(t, [2]Time{Unset, Unset}, [2]Time{late, close}, "Unset is no row")
	f.Observe(0, "", Min)
	_, close = f.Advance(Clock{})
	require.Equal(t, Min, close)
	f.Observe(0, "", EndOfTime)
	_, close = f.Advance(Clock{})
	require.Equal(t, Max.Add(-time.Hour), close)
}

// Rows of an unfinished batch neither move W in a Tick nor get into the state.
func TestUnfinishedBatchLeavesNoTrace(t *testing.T) {
	f := NewFrontier(Config{Sources: []SourceConfig{{}}}, Clock{})
	f.Observe(0, "", 5)
	f.Advance(Clock{})
	state := f.AppendState(nil)
	f.Observe(0, "", 9)
	f.Observe(0, "new", 1)
	_, close := f.Tick(Clock{Mono: time.Hour})
	require.Equal(t, Time(5), close)
	require.Equal(t, state, f.AppendState(nil))
	_, close = f.Advance(Clock{Mono: time.Hour})
	require.Equal(t, Time(5), close)
	require.NotEqual(t, state, f.AppendState(nil))
}

// A clock that goes back counts as one that stands.
func TestMonotonicClockNeverGoesBack(t *testing.T) {
	f := NewFrontier(Config{Sources: []SourceConfig{{}}, StartupGrace: 10}, Clock{Mono: 100})
	f.Observe(0, "", 5)
	f.Advance(Clock{Mono: 50})
	at, ok := f.Deadline()
	require.True(t, ok)
	require.Equal(t, time.Duration(110), at)
	_, close := f.Tick(Clock{Mono: 109})
	require.Equal(t, Unset, close)
	_, close = f.Tick(Clock{Mono: 110})
	require.Equal(t, Time(5), close)
}

func TestHugeTimeouts(t *testing.T) {
	const huge = time.Duration(1<<63 - 1)
	f := NewFrontier(Config{Sources: []SourceConfig{{Name: "A", IdleTimeout: huge}, {Name: "B", IdleTimeout: huge}}, StartupGrace: huge},
		Clock{Mono: huge - 1})
	f.Observe(0, "", 5)
	f.Advance(Clock{Mono: huge - 1})
	at, ok := f.Deadline()
	require.True(t, ok)
	require.Equal(t, huge, at)
	_, close := f.Tick(Clock{Mono: huge})
	require.Equal(t, Unset, close)
}

func TestNewFrontierRefuses(t *testing.T) {
	require.Panics(t, func() { NewFrontier(Config{}, Clock{}) })
	require.Panics(t, func() { NewFrontier(Config{Sources: []SourceConfig{{Name: "a"}, {Name: "a"}}}, Clock{}) })
}

// With declared partitions, no idle timeout and the minimum, rows at most the delay
// behind the newest of their partition are never older than W, and W after the last
// batch does not depend on the cut.
func TestRowsWithinTheDelayAreNeverLate(t *testing.T) {
	r := seeded(t)
	for range 200 {
		const delay = 10
		cfg := Config{Sources: []SourceConfig{{Delay: delay, PartitionCount: 4}}}
		one, whole := NewFrontier(cfg, Clock{}), NewFrontier(cfg, Clock{})
		newest := map[string]Time{}
		for batch := 0; batch < 30; batch++ {
			for range r.IntN(5) {
				name := fmt.Sprint("p", r.IntN(4))
				if newest[name] == 0 {
					newest[name] = Time(100 + r.IntN(100))
				}
				at := newest[name] - delay + Time(r.IntN(3*delay))
				newest[name] = max(newest[name], at)
				require.GreaterOrEqual(t, at, one.Watermark())
				one.Observe(0, name, at)
				whole.Observe(0, name, at)
			}
			one.Advance(Clock{})
		}
		whole.Advance(Clock{})
		require.Equal(t, whole.Watermark(), one.Watermark())
	}
}

// W never decreases and, once set, is never unset, also with many partitions of both
// policies that come and go; the answer is that of a scan.
func TestRankingsAgreeWithAScan(t *testing.T) {
	r := seeded(t)
	for _, policy := range []Policy{PolicyMin, PolicyMax} {
		for range 100 {
			s := newSource(&SourceConfig{IdleTimeout: 10}, policy)
			var all []*partition
			for step := 0; step < 200; step++ {
				s.pass(time.Duration(r.IntN(6)), r.IntN(4) > 0)
				for range 1 + r.IntN(3) {
					if len(all) == 0 || r.IntN(10) == 0 {
						all = append(all, s.add(0, fmt.Sprint(len(all))))
					}
					p := all[r.IntN(len(all))]
					p.next = Time(step/2 + r.IntN(20))
					s.spoke(p, 0)
				}
				require.Equal(t, bruteForce(all, &s, policy), timeOf(s.head()), "policy %s step %d", policy, step)
			}
		}
	}
}

// bruteForce is the deciding time among the active partitions of s by looking at all.
func bruteForce(all []*partition, s *source, policy Policy) Time {
	best := Unset
	for _, p := range all {
		if s.settled-p.spoken >= s.config.IdleTimeout || p.time == Unset {
			continue
		}
		if best == Unset || (policy == PolicyMin) == (p.time < best) {
			best = p.time
		}
	}
	return best
}

func timeOf(p *partition) Time {
	if p == nil {
		return Unset
	}
	return p.time
}
