package windowing

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// joinRow is a row that waits for partners.
type joinRow struct {
	key     *joinKey
	payload string
	time    watermark.Time
	arrival int64
	matches uint32 // partners that it had; 1 stands for any number where nothing limits them
	side    uint8
	shown   bool // semi join: it is in first or came out
	gone    bool
	fresh   bool // not in the store as a whole
	dirty   bool // in changed
}

// before is the order of eviction among the rows of a side.
func (it *joinRow) before(other *joinRow) bool { return it.compare(other) < 0 }

func (it *joinRow) compare(other *joinRow) int {
	if c := cmp.Compare(it.time, other.time); c != 0 {
		return c
	}
	return cmp.Compare(it.arrival, other.arrival)
}

// joinKey holds the rows of one key by their side, in the order (time, arrival).
type joinKey struct {
	name string // canonical
	rows [2][]*joinRow
}

// insert puts a row into its place, which is the last one for most.
func (k *joinKey) insert(it *joinRow) {
	list := k.rows[it.side]
	if n := len(list); n == 0 || list[n-1].before(it) {
		k.rows[it.side] = append(list, it)
		return
	}
	at, _ := slices.BinarySearchFunc(list, it, (*joinRow).compare)
	k.rows[it.side] = slices.Insert(list, at, it)
}

// removeFirst takes out the row that is evicted first.
func (k *joinKey) removeFirst(it *joinRow) {
	list := k.rows[it.side]
	if len(list) == 0 || list[0] != it {
		panic("windowing: a row is evicted before its turn")
	}
	list[0] = nil
	k.rows[it.side] = list[1:]
}

func (k *joinKey) empty() bool { return len(k.rows[LeftSide]) == 0 && len(k.rows[RightSide]) == 0 }

// partners gives the rows of the other side that match a row of a key at a time.
func (j *Join) partners(k *joinKey, t watermark.Time, side int) []*joinRow {
	list := k.rows[1-side]
	// right.t - left.t is a distance in [low, high]. For a right row the partner's
	// distance from it is the negative of that.
	from := lowerBound(list, func(p *joinRow) bool {
		if side == LeftSide {
			return compareSum(t, j.low, p.time) <= 0
		}
		return compareSum(p.time, j.high, t) >= 0
	})
	list = list[from:]
	end := lowerBound(list, func(p *joinRow) bool {
		if side == LeftSide {
			return compareSum(t, j.high, p.time) < 0
		}
		return compareSum(p.time, j.low, t) > 0
	})
	return list[:end]
}

// lowerBound is the index of the first row from which on reached holds.
func lowerBound(list []*joinRow, reached func(*joinRow) bool) int {
	at, _ := slices.BinarySearchFunc(list, true, func(p *joinRow, _ bool) int {
		if reached(p) {
			return 1
		}
		return -1
	})
	return at
}

// compareSum compares t + d with u. The sum need not fit into 64 bits.
func compareSum(t watermark.Time, d time.Duration, u watermark.Time) int {
	rest := u - watermark.Time(d)
	switch {
	case d > 0 && rest > u: // u - d is below every time
		return 1
	case d < 0 && rest < u: // above every time
		return -1
	}
	return cmp.Compare(t, rest)
}

// appendArrival appends the element of a row key that stands for one side.
func appendArrival(b []byte, it *joinRow) []byte {
	if it == nil {
		return append(b, ",null"...)
	}
	return strconv.AppendInt(append(b, ','), it.arrival, 10)
}
