package watermark

import (
	"math"
	"time"
)

// elsewhere is where the idle clock of a partition stands that somebody else reads: before
// every idle timeout.
const elsewhere = time.Duration(math.MinInt64)

// Away says that a partition is read by somebody else from now on, as a partition of a
// topic is that another member of a consumer group takes over: nothing of it will come
// here, so it does not hold W back, as an idle one does not, whether IdleTimeout is set or
// not. It is active again when it speaks, or after Back. W moves at the next Advance or
// Tick, for which Deadline asks. It reports whether a source has heard the partition.
//
// This is no state: a restored partition is active.
func (f *Frontier) Away(partition string) (known bool) {
	for i := range f.sources {
		if p := f.sources[i].byName[partition]; p != nil && p.time != Unset {
			p.spoken = elsewhere
			known = true
		}
	}
	return known
}

// Back says that a partition that was away will speak here again: it is active as if it
// had just spoken. W does not go back.
func (f *Frontier) Back(partition string) {
	for i := range f.sources {
		s := &f.sources[i]
		if p := s.byName[partition]; p != nil && p.spoken == elsewhere {
			p.spoken = s.idle
			s.active.spoke(p)
		}
	}
}
