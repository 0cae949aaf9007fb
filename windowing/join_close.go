package windowing

import "github.com/connect-windowed/connect-windowed/watermark"

// silentPerResult is how many entries may go without a word for each result that
// a part of a close may hold.
const silentPerResult = 16

// Advance evicts the rows that no partner can reach any more, in the order in
// which their time runs out, the left side first where both run out at once. Those
// of an outer side that have had no partner come out. What is gone is no longer
// state, so that a restart goes on with the rest.
func (j *Join) Advance(in Instant, limit int, out *Output) (done bool) {
	if in.Close > j.reached {
		j.reached, j.progress = in.Close, true
	}
	budget := limit * silentPerResult
	for {
		side, ok := j.nextDue()
		if !ok {
			return true
		}
		if budget <= 0 {
			return false
		}
		it := j.due[side].pop()
		j.evict(it)
		budget--
		if j.outer[side] && it.matches == 0 {
			j.alone(it, out)
			budget -= silentPerResult - 1
		}
	}
}

// nextDue gives the side whose first row is to be evicted next.
func (j *Join) nextDue() (side int, ok bool) {
	for s := range j.due {
		if len(j.due[s]) == 0 || !j.isDue(j.due[s][0]) {
			continue
		}
		if !ok || j.runsOut(j.due[s][0]) < j.runsOut(j.due[side][0]) {
			side, ok = s, true
		}
	}
	return side, ok
}

// isDue says that no partner of a row can arrive any more. The end of time leaves
// none.
func (j *Join) isDue(it *joinRow) bool {
	return j.reached == watermark.EndOfTime || compareSum(it.time, j.hold[it.side], j.reached) < 0
}

// runsOut is the last instant at which a row may wait.
func (j *Join) runsOut(it *joinRow) watermark.Time { return it.time.Add(j.hold[it.side]) }

// evict forgets a row, and its key with the last one.
func (j *Join) evict(it *joinRow) {
	k := it.key
	k.removeFirst(it)
	if k.empty() {
		delete(j.keys, k.name)
	}
	it.gone = true
	if !it.fresh {
		j.gone = append(j.gone, it)
	}
}
