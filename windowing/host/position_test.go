package host

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

const testHorizon = 10 * time.Minute

// positionRig is a set of positions with a store to restart from.
type positionRig struct {
	*positions
	store kv.Store
	now   time.Duration
	last  kv.Batch // of the last save
}

func newPositionRig(mode PositionMode) *positionRig {
	return &positionRig{positions: newPositions(mode, testHorizon), store: kv.NewMemory(), now: time.Hour}
}

func (r *positionRig) commit(t testing.TB) {
	r.last.Reset()
	r.save(&r.last)
	require.NoError(t, r.store.Commit(&r.last))
}

// restart goes on with what is in the store.
func (r *positionRig) restart(t testing.TB) {
	limit := r.limit
	r.positions = newPositions(r.mode, r.horizon)
	r.limit = limit
	require.NoError(t, r.load(r.store, r.now))
}

// piece is a message of a source: a part of what stands at an offset.
type piece struct {
	partition string
	offset    int64
	part      int
}

func (p piece) position() *Position {
	return &Position{Partition: p.partition, Offset: p.offset, Known: true, Hash: Fingerprint(fmt.Appendf(nil, "%v", p))}
}

// randomPieces makes the messages at some offsets of a partition, with holes.
func randomPieces(r *rand.Rand, partition string, n int) (messages [][]piece) {
	off := r.Int64N(1000) - 500
	for range n {
		off += 1 + r.Int64N(1+r.Int64N(4))
		var parts []piece
		for part := range 1 + max(0, r.IntN(6)-3) {
			parts = append(parts, piece{partition, off, part})
		}
		messages = append(messages, parts)
	}
	return messages
}

// randomBatch mixes messages of several partitions: new ones, out of order, and
// ones that came before. All parts of a message are in it, in their order, but
// not always side by side.
func randomBatch(r *rand.Rand, source [][][]piece, read []int) (batch []piece) {
	chosen := map[int]map[int]bool{}
	var lists [][]piece
	for range 1 + r.IntN(8) {
		at := r.IntN(len(source))
		i := read[at]
		switch r.IntN(4) {
		case 0:
			i = r.IntN(i + 1)
		case 1:
			i += r.IntN(3)
		default:
			read[at]++
		}
		if chosen[at] == nil {
			chosen[at] = map[int]bool{}
		}
		if i < len(source[at]) && !chosen[at][i] {
			chosen[at][i] = true
			lists = append(lists, source[at][i])
		}
	}
	for len(lists) > 0 {
		i := 0
		if r.IntN(3) == 0 {
			i = r.IntN(len(lists))
		}
		batch = append(batch, lists[i][0])
		if lists[i] = lists[i][1:]; len(lists[i]) == 0 {
			lists = append(lists[:i], lists[i+1:]...)
		}
	}
	return batch
}

// Every message is applied once, whatever comes in which order and batch, and
// whether or not every step is followed by a restart.
func TestPositionsAgainstASet(t *testing.T) {
	r := newSeed(t)
	for range 150 {
		restarts := r.IntN(2) == 0
		var source [][][]piece
		for i := range 1 + r.IntN(4) {
			source = append(source, randomPieces(r, fmt.Sprint("p", i), 60))
		}
		rig, read, naive := newPositionRig(Offsets), make([]int, len(source)), map[piece]bool{}
		for range 120 {
			rig.begin()
			for _, p := range randomBatch(r, source, read) {
				fresh, err := rig.apply(p.position(), rig.now)
				require.NoError(t, err, "%v", p)
				require.Equal(t, !naive[p], fresh, "%v", p)
				naive[p] = true
			}
			rig.now += time.Second
			rig.closeGaps(rig.now)
			if rig.commit(t); restarts {
				rig.restart(t)
			}
		}
	}
}

// A gap is closed once its partition is the horizon past it, and what turns up in
// it afterwards stops the reading.
func TestGapsClose(t *testing.T) {
	for _, restart := range []bool{false, true} {
		rig := newPositionRig(Offsets)
		apply := func(off int64) (bool, error) {
			rig.begin()
			return rig.apply(piece{"p", off, 0}.position(), rig.now)
		}
		for _, off := range []int64{10, 11, 13, 17} {
			fresh, err := apply(off)
			require.NoError(t, err)
			require.True(t, fresh)
		}
		rig.now += testHorizon - 1
		rig.closeGaps(rig.now)
		fresh, err := apply(12)
		require.NoError(t, err, "the gap is open")
		require.True(t, fresh)
		rig.now++
		rig.closeGaps(rig.now)
		if rig.commit(t); restart {
			rig.restart(t)
		}
		require.EqualValues(t, 18, rig.parts["p"].mark)
		for _, off := range []int64{10, 11, 12, 13, 17} {
			fresh, err = apply(off)
			require.NoError(t, err)
			require.False(t, fresh)
		}
		for _, off := range []int64{9, 14, 16, math.MinInt64} {
			_, err = apply(off)
			require.ErrorIs(t, err, ErrPosition, "%d was given up", off)
			require.ErrorContains(t, err, "gap")
		}
		fresh, err = apply(18)
		require.NoError(t, err)
		require.True(t, fresh)
		require.EqualValues(t, 19, rig.parts["p"].mark)
	}
}

// A restart gives gaps their whole time again: while nothing ran, nothing could
// be redelivered.
func TestGapsAgeAnew(t *testing.T) {
	rig := newPositionRig(Offsets)
	for _, off := range []int64{1, 3} {
		_, err := rig.apply(piece{"p", off, 0}.position(), rig.now)
		require.NoError(t, err)
	}
	rig.commit(t)
	rig.now += testHorizon
	rig.restart(t)
	rig.now += testHorizon - 1
	rig.closeGaps(rig.now)
	fresh, err := rig.apply(piece{"p", 2, 0}.position(), rig.now)
	require.NoError(t, err)
	require.True(t, fresh)
}

// More gaps than a partition may have: the oldest close early.
func TestGapLimit(t *testing.T) {
	rig := newPositionRig(Offsets)
	for i := range int64(gapLimit + 10) {
		_, err := rig.apply(piece{"p", 2 * i, 0}.position(), rig.now)
		require.NoError(t, err)
	}
	rig.closeGaps(rig.now)
	p := rig.parts["p"]
	require.Len(t, p.above, gapLimit)
	require.EqualValues(t, 2*9+1, p.mark)
	rig.commit(t)
	rig.restart(t)
	require.Len(t, rig.parts["p"].above, gapLimit)
}

// Payloads are compared as far back as fingerprints are kept; what is older is
// refused, but for the first positions.
func TestForgottenPositions(t *testing.T) {
	for _, restart := range []bool{false, true} {
		rig := newPositionRig(Offsets)
		const blockCount = 100
		rig.limit = blockCount
		const n = blockSize*blockCount + 10*blockSize
		for off := range int64(n) {
			rig.begin()
			for part := range 2 {
				fresh, err := rig.apply(piece{"p", off, part}.position(), rig.now)
				require.NoError(t, err)
				require.True(t, fresh)
			}
			if off%5000 == 0 {
				rig.commit(t)
			}
		}
		if rig.commit(t); restart {
			rig.restart(t)
		}
		again := func(off int64, part int, change bool) error {
			rig.begin()
			for at := range part + 1 {
				pos := piece{"p", off, at}.position()
				if change {
					pos.Hash++
				}
				fresh, err := rig.apply(pos, rig.now)
				require.False(t, fresh, "offset %d part %d", off, at)
				if err != nil {
					return err
				}
			}
			return nil
		}
		for _, off := range []int64{0, 1, firstPrints - 1, n - blockSize*(blockCount-1), n - 1} {
			require.NoError(t, again(off, 1, false), "offset %d", off)
			err := again(off, 0, true)
			require.ErrorIs(t, err, ErrPosition)
			require.ErrorContains(t, err, "another payload")
			require.ErrorContains(t, err, "uuid_v4()")
		}
		for _, off := range []int64{firstPrints, 1000, 9 * blockSize} {
			err := again(off, 0, false)
			require.ErrorIs(t, err, ErrPosition)
			require.ErrorContains(t, err, "too long ago")
		}
	}
}

// A crash between a commit and its acknowledgements brings back all of it, and of
// the one that was applied meanwhile: that must not be too long ago.
func TestRedeliveryOfWholeCommits(t *testing.T) {
	var cfg Config
	cfg.defaults()
	most := int64(cfg.Limits.CommitRows + cfg.Limits.PendingRows)
	require.Greater(t, int64(blockLimit*blockSize), 8*most)
	rig := newPositionRig(Offsets)
	for round := range 2 {
		for off := range most {
			pos := Position{Partition: "p", Offset: off, Known: true, Hash: uint32(off + 1)}
			fresh, err := rig.apply(&pos, rig.now)
			require.NoError(t, err)
			require.Equal(t, round == 0, fresh)
		}
		rig.commit(t)
		rig.restart(t)
	}
}

// Partitions share the fingerprints: a busy one takes what the others do not need,
// and each keeps some.
func TestFingerprintsAreShared(t *testing.T) {
	rnd := newSeed(t)
	rig := newPositionRig(Offsets)
	rig.limit = 20 * leastKept
	next := map[string]int64{}
	for range 3_000 {
		name := "busy"
		if rnd.IntN(10) == 0 {
			name = fmt.Sprint("quiet ", rnd.IntN(10))
		}
		for range blockSize / 4 {
			rig.begin()
			_, err := rig.apply(piece{name, next[name], 0}.position(), rig.now)
			require.NoError(t, err)
			next[name]++
		}
		if rnd.IntN(100) == 0 {
			rig.commit(t)
			rig.restart(t)
		}
	}
	total := 0
	for name, p := range rig.parts {
		total += len(p.print.order)
		kept := min(next[name], leastKept*blockSize)
		for off := next[name] - kept + blockSize; off < next[name]; off++ {
			rig.begin()
			fresh, err := rig.apply(piece{name, off, 0}.position(), rig.now)
			require.NoError(t, err, "%s %d", name, off)
			require.False(t, fresh)
		}
	}
	require.Equal(t, rig.limit, total)
	require.Greater(t, len(rig.parts["busy"].print.order), rig.limit/2)
	// More partitions than there are blocks for: each keeps the least.
	for i := range 30 {
		for off := range int64(leastKept * blockSize) {
			_, err := rig.apply(piece{fmt.Sprint("late ", i), off, 0}.position(), rig.now)
			require.NoError(t, err)
		}
	}
	for name, p := range rig.parts {
		require.GreaterOrEqual(t, len(p.print.order), min(leastKept, int(next[name]/blockSize)), name)
		require.LessOrEqual(t, len(p.print.order), leastKept+1, name)
	}
}

// What a commit writes of positions depends on what moved, not on how many there
// were.
func TestPositionsWriteLittle(t *testing.T) {
	rig := newPositionRig(Offsets)
	const blockCount = 100
	rig.limit = blockCount
	most, keys := 0, 0
	for off := range int64(3 * blockSize * blockCount) {
		rig.begin()
		for part := range 1 + int(off%2) {
			_, err := rig.apply(piece{"p", off, part}.position(), rig.now)
			require.NoError(t, err)
		}
		if off%97 == 0 && off > firstPrints {
			rig.commit(t)
			most = max(most, rig.last.Size())
		}
	}
	require.NoError(t, rig.store.Scan(nil, nil, func(_, _ []byte) error { keys++; return nil }))
	require.Less(t, most, 8<<10)
	require.Less(t, keys, blockCount+blockSize*blockCount/2+200)
	require.LessOrEqual(t, len(rig.parts["p"].parts), blockSize*blockCount/2+firstPrints)
}

// The ends of the numbers are offsets like others, or refused.
func TestOffsetsAtTheEnds(t *testing.T) {
	for _, off := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64} {
		rig := newPositionRig(Offsets)
		rig.begin()
		fresh, err := rig.apply(piece{"p", off, 0}.position(), rig.now)
		if off == math.MaxInt64 {
			require.ErrorIs(t, err, ErrPosition)
			continue
		}
		require.NoError(t, err)
		require.True(t, fresh)
		for range 2 {
			rig.begin()
			fresh, err = rig.apply(piece{"p", off, 0}.position(), rig.now)
			require.NoError(t, err)
			require.False(t, fresh, "offset %d", off)
			rig.now += testHorizon
			rig.closeGaps(rig.now)
			rig.commit(t)
			rig.restart(t)
		}
	}
}

// Messages without a position are always new.
func TestNoPosition(t *testing.T) {
	rig := newPositionRig(None)
	for range 3 {
		fresh, err := rig.apply(&Position{}, rig.now)
		require.NoError(t, err)
		require.True(t, fresh)
	}
	rig.commit(t)
	require.Zero(t, rig.last.Len())
}
