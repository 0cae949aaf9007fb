package windowing

import (
	"slices"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// silentPerResult is how many entries may go without a word for each result that
// a part of a close may hold.
const silentPerResult = 16

// Advance evicts the rows that no partner can reach any more. Those of an outer side
// that have had no partner come out, in the order in which their time runs out, the
// left side first where both run out at once. What is gone is no longer state, so
// that a restart goes on with the rest.
func (j *Join) Advance(in Instant, limit int, out *Output) (done bool) {
	if in.Close > j.reached {
		j.reached, j.progress = in.Close, true
	}
	budget := limit * silentPerResult
	for {
		it, err := j.nextDue()
		if err != nil {
			out.Break(err)
			return false
		}
		if it == nil {
			break
		}
		if budget <= 0 {
			return false
		}
		j.due[it.side].pop()
		j.pass(it)
		j.forget(it)
		budget--
		if it.matches == 0 {
			j.alone(it, out)
			budget -= silentPerResult - 1
		}
	}
	for side := range j.segments {
		if !j.dropSegments(side, &budget) {
			return false
		}
	}
	j.shed()
	return true
}

// nextDue gives the row of an outer side that is to be evicted next, the first of its
// heap, nil where none is due.
func (j *Join) nextDue() (next *joinRow, err error) {
	for side := range j.due {
		it, err := j.nextOf(side)
		if err != nil {
			return nil, err
		}
		if it != nil && (next == nil || j.runsOut(it) < j.runsOut(next)) {
			next = it
		}
	}
	return next, nil
}

// nextOf is nextDue for one side.
func (j *Join) nextOf(side int) (*joinRow, error) {
	if !j.outer[side] {
		return nil, nil
	}
	for {
		for len(j.due[side]) > 0 && j.due[side][0].gone {
			j.due[side].pop()
		}
		due := len(j.due[side]) > 0 && j.isDue(side, j.due[side][0].time)
		if due && !j.horizon[side].before(j.due[side][0].stands()) || !j.awayDue(side) {
			if !due {
				return nil, nil
			}
			return j.due[side][0], nil
		}
		if err := j.approach(side); err != nil {
			return nil, err
		}
	}
}

// awayDue says that a row beyond the horizon may be due and away.
func (j *Join) awayDue(side int) bool {
	return j.isDue(side, j.horizon[side].at) && slices.ContainsFunc(j.segments[side], func(s *segment[*joinRow]) bool {
		return j.isDue(side, s.first) && s.beyond(j.horizon[side])
	})
}

// isDue says that no partner of a row of that time can arrive any more. The end of
// time leaves none.
func (j *Join) isDue(side int, at watermark.Time) bool {
	return j.reached == watermark.EndOfTime || at != watermark.EndOfTime && compareSum(at, j.hold[side], j.reached) < 0
}

// runsOut is the last instant at which a row may wait.
func (j *Join) runsOut(it *joinRow) watermark.Time { return it.time.Add(j.hold[it.side]) }

// ordered says that the rows of an outer side are evicted in the order of their
// times. Where they may be evicted before they can be late, one that is evicted may
// be followed by an earlier one; few of those ever reach the disk, and their records
// go one by one.
func (j *Join) ordered(side int) bool { return j.hold[side] >= 0 }

// pass notes that a row of an outer side is evicted.
func (j *Join) pass(it *joinRow) {
	switch {
	case j.ordered(int(it.side)):
		j.passed[it.side], j.progress = it.stands(), true
	case !it.fresh:
		j.gone = append(j.gone, it)
	}
}

// over says that a row is evicted.
func (j *Join) over(it *joinRow) bool {
	side := int(it.side)
	if j.outer[side] {
		return j.ordered(side) && !j.passed[side].before(it.stands())
	}
	return j.isDue(side, it.time)
}

// dropSegments forgets the segments of a side that are over, with about budget rows,
// and says whether none is left. Records go with the next Save.
func (j *Join) dropSegments(side int, budget *int) (done bool) {
	for len(j.segments[side]) > 0 && j.isDue(side, j.segments[side][0].last) {
		s := j.segments[side][0]
		n := min(len(s.list), max(*budget, 1))
		for i, it := range s.list[:n] {
			j.forget(it)
			s.list[i] = nil
		}
		*budget -= n
		if s.list = s.list[n:]; len(s.list) > 0 {
			return false
		}
		if s.stored {
			j.doomed[side] = append(j.doomed[side], s.last)
		}
		j.held -= s.filter.bytes()
		j.segments[side] = slices.Delete(j.segments[side], 0, 1)
	}
	return true
}

// forget takes a row out of memory, and its key with the last one.
func (j *Join) forget(it *joinRow) {
	if it.gone {
		return
	}
	it.gone = true
	it.key.remove(it)
	if it.key.empty() {
		delete(j.keys, it.key.name)
	}
	j.held -= it.bytes()
	j.rows--
}
