package kafka

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// recordsAt makes records of ten bytes at offsets.
func recordsAt(offsets ...int64) (rs []*kgo.Record) {
	for _, o := range offsets {
		rs = append(rs, &kgo.Record{Topic: "t", Offset: o, LeaderEpoch: 7, Value: make([]byte, 10)})
	}
	return rs
}

func offsetsOf(rs []*kgo.Record) (found []int64) {
	for _, r := range rs {
		found = append(found, r.Offset)
	}
	return found
}

func at(offset int64) kgo.EpochOffset { return kgo.EpochOffset{Epoch: 7, Offset: offset} }

func TestPositionMovesInOrder(t *testing.T) {
	l := &lane{}
	l.put(recordsAt(3, 4, 7), 10)
	l.put(recordsAt(8, 9), 10)
	first, second, third := l.take(20, 0), l.take(20, 0), l.take(20, 0)
	require.Equal(t, []int64{3, 4}, offsetsOf(first.records))
	require.Equal(t, []int64{7}, offsetsOf(second.records))
	require.Equal(t, []int64{8, 9}, offsetsOf(third.records))
	require.Zero(t, l.bytes)
	require.EqualValues(t, 3, l.position())

	require.False(t, l.flight.acknowledge(second, nil))
	require.False(t, l.flight.acknowledge(third, []int{1}))
	require.False(t, l.flight.moved)
	require.True(t, l.flight.acknowledge(first, []int{1}))
	require.Equal(t, at(4), l.flight.position)
	require.True(t, l.flight.acknowledge(first, nil))
	require.Equal(t, at(9), l.flight.position)
	require.False(t, l.flight.acknowledge(first, nil), "twice")
	require.True(t, l.flight.acknowledge(third, nil))
	require.Equal(t, at(10), l.flight.position)
	require.Zero(t, l.flight.bytes)
	require.Zero(t, l.flight.waiting)
	require.Empty(t, l.flight.parcels)
}

func TestPositionKeepsWhereNothingInFrontIsAcknowledged(t *testing.T) {
	l := &lane{}
	l.put(recordsAt(0, 1, 2), 3)
	p := l.take(100, 0)
	require.False(t, l.flight.acknowledge(p, []int{0, 2}))
	require.Equal(t, []int64{0, 2}, offsetsOf(p.records))
	require.True(t, l.flight.acknowledge(p, []int{1}), "1 was acknowledged before 0")
	require.Equal(t, at(2), l.flight.position)
}

func TestYield(t *testing.T) {
	l := &lane{}
	l.put(recordsAt(0, 1, 2), 3)
	require.Len(t, l.take(1, 0).records, 1, "a batch has a record")
	require.Len(t, l.take(19, 0).records, 1)
	require.Len(t, l.take(20, 0).records, 1)
	require.False(t, l.ready(0))
}

func TestWindow(t *testing.T) {
	l := &lane{}
	l.put(recordsAt(0, 1, 2), 3)
	p := l.take(10, 0)
	require.False(t, l.ready(0), "one batch at a time")
	require.False(t, l.ready(10))
	require.True(t, l.ready(11))
	l.flight.acknowledge(p, nil)
	require.True(t, l.ready(0))
	l.frozen = true
	require.False(t, l.ready(0))
}

// TestLanes plays random deliveries against a model: which offsets were
// acknowledged. Whatever happens, nothing is lost, the position is the first
// offset that is not acknowledged, and with one batch at a time the order is kept.
func TestLanes(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { playLane(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

// FuzzLanes looks for other deliveries.
func FuzzLanes(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { playLane(t, rand.New(rand.NewPCG(a, b))) })
}

// laneModel is what a lane has to agree with.
type laneModel struct {
	put    []int64
	acked  map[int64]bool
	out    []*parcel
	window int
}

func playLane(t *testing.T, rng *rand.Rand) {
	m := &laneModel{acked: map[int64]bool{}, window: rng.IntN(2) * rng.IntN(100)}
	l := &lane{}
	next := int64(rng.IntN(5))
	for range 200 {
		switch {
		case rng.IntN(3) == 0:
			var offsets []int64
			for range rng.IntN(8) {
				next += 1 + int64(rng.IntN(2)*rng.IntN(3)) // gaps, as compaction leaves them
				offsets = append(offsets, next)
			}
			l.put(recordsAt(offsets...), next+1)
			m.put = append(m.put, offsets...)
		case rng.IntN(2) == 0 && l.ready(m.window):
			p := l.take(1+rng.IntN(50), 0)
			m.handedOut(t, p)
		case len(m.out) > 0:
			m.settle(t, l, rng)
		}
	}
	for l.ready(m.window) || len(m.out) > 0 {
		for l.ready(m.window) {
			m.handedOut(t, l.take(30, 0))
		}
		for len(m.out) > 0 {
			m.settle(t, l, rng)
		}
	}
	require.Len(t, m.acked, len(m.put))
	require.Zero(t, l.bytes)
	require.Zero(t, l.flight.bytes)
	require.Zero(t, l.flight.waiting)
}

func (m *laneModel) handedOut(t *testing.T, p *parcel) {
	if m.window == 0 {
		require.Empty(t, m.out, "one batch at a time")
		require.Equal(t, m.first(), p.records[0].Offset, "in order, nothing left out")
	}
	for _, r := range p.records {
		require.False(t, m.acked[r.Offset], "delivered again although acknowledged")
	}
	m.out = append(m.out, p)
}

// first is the first offset that is not acknowledged, -1 for none.
func (m *laneModel) first() int64 {
	i := slices.IndexFunc(m.put, func(o int64) bool { return !m.acked[o] })
	if i < 0 {
		return -1
	}
	return m.put[i]
}

func (m *laneModel) settle(t *testing.T, l *lane, rng *rand.Rand) {
	i := rng.IntN(len(m.out))
	p := m.out[i]
	m.out = slices.Delete(m.out, i, i+1)
	var failed []int
	for j, r := range p.records {
		if rng.IntN(4) == 0 {
			failed = append(failed, j)
			continue
		}
		m.acked[r.Offset] = true
	}
	before := l.flight.position
	l.flight.acknowledge(p, failed)
	require.GreaterOrEqual(t, l.flight.position.Offset, before.Offset)
	if !p.done {
		l.refuse(p)
	}
	if !l.flight.moved {
		return
	}
	first := m.first()
	for _, o := range m.put {
		committed := o < l.flight.position.Offset
		if committed && !m.acked[o] {
			t.Fatalf("offset %d is committed but not acknowledged", o)
		}
		if !committed && (first < 0 || o < first) {
			t.Fatalf("position %d stays behind: all is acknowledged to %d", l.flight.position.Offset, first)
		}
	}
}

func TestBackOff(t *testing.T) {
	require.Zero(t, backOff(0))
	require.Zero(t, backOff(2))
	require.Equal(t, 8*time.Millisecond, backOff(3))
	require.Equal(t, time.Second, backOff(10))
	require.Equal(t, time.Second, backOff(1<<40))
}
