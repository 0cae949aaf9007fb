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
	segment *segment[*joinRow]
	payload string
	time    watermark.Time
	arrival int64
	matches uint32 // partners that it had; 1 stands for any number where nothing limits them
	side    uint8
	shown   bool // semi join: it is in first or came out
	gone    bool
	fresh   bool  // not in the store as a whole
	dirty   bool  // in changed
	listed  bool  // its key is in the filter of its segment
	saved   int64 // the Save that wrote it, where it is not dirty
}

// before is the order of eviction among the rows of a side.
func (it *joinRow) before(other *joinRow) bool { return it.compare(other) < 0 }

func (it *joinRow) compare(other *joinRow) int { return it.stands().compare(other.stands()) }

// stands is the order of eviction.
func (it *joinRow) stands() instant { return instant{it.time, it.arrival} }

// bytes is about what a row takes in memory, with a key of its own.
func (it *joinRow) bytes() int64 { return joinRowBytes + int64(len(it.payload)+len(it.key.name)) }

const joinRowBytes = entryBytes + 112

// joinKey holds the rows of one key by their side, in the order (time, arrival).
type joinKey struct {
	name  string // canonical
	rows  [2][]*joinRow
	whole *[2]stretch // with a bound: where all rows of a side are in memory, nil: nowhere
}

// stretch is a piece of event time, both ends included; it is empty where to is
// before from.
type stretch struct{ from, to watermark.Time }

var nowhere = stretch{from: watermark.EndOfTime, to: watermark.Unset}

func (s stretch) holds(other stretch) bool { return s.from <= other.from && other.to <= s.to }

// joined is both where they touch, else the other one.
func (s stretch) joined(other stretch) stretch {
	if s.to < other.from-1 || other.to < s.from-1 {
		return other
	}
	return stretch{min(s.from, other.from), max(s.to, other.to)}
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

// has says that a row is there.
func (k *joinKey) has(it *joinRow) bool {
	_, found := slices.BinarySearchFunc(k.rows[it.side], it, (*joinRow).compare)
	return found
}

// remove takes a row out, which is the first one for most.
func (k *joinKey) remove(it *joinRow) {
	list := k.rows[it.side]
	at, found := 0, len(list) > 0 && list[0] == it
	if !found {
		at, found = slices.BinarySearchFunc(list, it, (*joinRow).compare)
	}
	switch {
	case !found:
		panic("windowing: a row is not where it was put")
	case at == 0:
		list[0] = nil
		k.rows[it.side] = list[1:]
	default:
		k.rows[it.side] = slices.Delete(list, at, at+1)
	}
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

// Sizes gives the rows that wait for partners, as windows, and the keys that they
// have, as far as they are in memory. Of many, some that are evicted may be among them,
// and of those on disk.
func (j *Join) Sizes() (windows, groups int) {
	windows, groups = j.rows, len(j.keys)
	for side, list := range j.segments {
		windows += list.away()
		for _, s := range list {
			if !j.isDue(side, s.first) || len(s.list) > fewToCount {
				continue
			}
			for _, it := range s.list {
				if !it.gone && j.over(it) {
					windows--
					if j.lastOf(it) {
						groups--
					}
				}
			}
		}
	}
	return windows, groups
}

// lastOf says that all rows of a key are over, and that a row is the last of them.
func (j *Join) lastOf(it *joinRow) bool {
	var last *joinRow
	for _, rows := range it.key.rows {
		if n := len(rows); n > 0 {
			if last = rows[n-1]; !j.over(last) {
				return false
			}
		}
	}
	return last == it
}
