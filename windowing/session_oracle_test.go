package windowing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// sessionStream is a random case: rows in batches, W = newest - delay.
type sessionStream struct {
	gap, bound, delay time.Duration // gap 0: rows have their own
	update            bool
	early             time.Duration
	having            bool             // sums that 3 divides are held back
	walls             []watermark.Time // of the batches
	batches           [][]Row
}

func (s sessionStream) String() string {
	return fmt.Sprintf("gap %s bound %s delay %s update %v early %s having %v", s.gap, s.bound, s.delay, s.update, s.early, s.having)
}

// randomSessions has event times around one instant, which may be an end of time.
func randomSessions(r *rand.Rand, bounded bool) sessionStream {
	gaps := []time.Duration{0, 0, 1, 5, 20, 100}
	centres := []watermark.Time{0, 0, 0, 1_700_000_000_000_000_000, watermark.Min, watermark.Max}
	s := sessionStream{gap: gaps[r.IntN(len(gaps))], delay: time.Duration(r.Int64N(100)), update: r.IntN(2) == 0}
	largest := max(int64(s.gap), 60)
	if bounded {
		s.bound = time.Duration(largest + r.Int64N(100))
	}
	centre, spread := centres[r.IntN(len(centres))], 1+r.Int64N(500)
	n, drift := 1+r.IntN(200), r.Int64N(10)
	for i := 0; i < n; {
		var batch []Row
		for range 1 + r.IntN(1+r.IntN(20)) {
			i++
			at := centre.Add(time.Duration(int64(i)*drift + r.Int64N(spread) - spread/2))
			key := []agg.Value{agg.Null(), agg.Int(int64(r.IntN(3))), agg.String(string(rune('a' + r.IntN(3))))}[r.IntN(3)]
			row := Row{Time: at, Arrival: int64(i), Key: key.AppendKey(nil), Args: []agg.Value{agg.Int(int64(i))}}
			if s.gap == 0 {
				row.Args = append(row.Args, agg.Int(1+r.Int64N(largest)))
			}
			batch = append(batch, row)
		}
		s.batches = append(s.batches, batch)
	}
	s.walls, s.having = randomWalls(r, len(s.batches)), r.IntN(3) == 0
	if !s.update && r.IntN(2) == 0 {
		s.early = time.Duration(1 + r.Int64N(200))
	}
	return s
}

// steps gives W before and after each batch.
func (s sessionStream) steps() []Instant {
	return stream{batches: s.batches, delay: s.delay, walls: s.walls}.steps()
}

// oracleSession is a set of rows that are one session.
type oracleSession struct {
	rows       []Row
	start, end watermark.Time
	old        bool // has a row from before the batch
	changed    bool
	stirs      bool // has changed since it came out
	shown      []shownRow
}

// oracleSessions gives the lines of each batch, and of the end of time, by the
// definition of sessions and nothing else.
type oracleSessions struct {
	sessionStream
	groups map[string][]*oracleSession
	alarm  *watermark.Time
}

func (s sessionStream) oracle() (output [][]string) {
	o := &oracleSessions{sessionStream: s, groups: map[string][]*oracleSession{}}
	for i, in := range s.steps() {
		o.merge(s.batches[i])
		lines := o.dropLate(s.batches[i], in.Late)
		output = append(output, append(append(lines, o.changes(in)...), o.close(in.Close)...))
	}
	return append(output, o.close(watermark.EndOfTime))
}

// merge puts the rows of a batch into sessions. Without a bound any two that
// touch are one until none touch. With it, row by row, the earliest that fits.
func (o *oracleSessions) merge(batch []Row) {
	for _, all := range o.groups {
		for _, it := range all {
			it.old, it.changed = true, false
		}
	}
	for _, row := range batch {
		gap := o.gap
		if gap == 0 {
			gap = time.Duration(row.Args[1].AsInt())
		}
		end := watermark.EndOfTime
		if uint64(watermark.Max)-uint64(row.Time) >= uint64(gap) { // the difference fits without a sign
			end = row.Time + watermark.Time(gap)
		}
		it := &oracleSession{rows: []Row{row}, start: row.Time, end: end, changed: true}
		key := string(row.Key)
		if o.bound > 0 {
			o.groups[key] = o.mergeBounded(o.groups[key], it)
		} else {
			o.groups[key] = append(o.groups[key], it)
		}
	}
	if o.bound == 0 {
		for key, all := range o.groups {
			o.groups[key] = mergeAll(all)
		}
	}
}

func mergeAll(all []*oracleSession) []*oracleSession {
	for i := 0; i < len(all); i++ {
		for j := 0; j < len(all); j++ {
			if i != j && all[i].start <= all[j].end && all[j].start <= all[i].end {
				all[i] = both(all[i], all[j])
				return mergeAll(slices.Delete(all, j, j+1))
			}
		}
	}
	return all
}

func (o *oracleSessions) mergeBounded(all []*oracleSession, it *oracleSession) []*oracleSession {
	sort.Slice(all, func(i, j int) bool { return all[i].start < all[j].start })
	for i, other := range all {
		if other.start <= it.end && it.start <= other.end {
			one := both(it, other)
			if uint64(one.end)-uint64(one.start) <= uint64(o.bound) {
				return o.mergeBounded(slices.Delete(all, i, i+1), one)
			}
		}
	}
	return append(all, it)
}

func both(a, b *oracleSession) *oracleSession {
	return &oracleSession{
		rows: append(slices.Clone(a.rows), b.rows...), start: min(a.start, b.start), end: max(a.end, b.end),
		old: a.old || b.old, changed: a.changed || b.changed, stirs: a.stirs || b.stirs, shown: append(slices.Clone(a.shown), b.shown...),
	}
}

func (o *oracleSessions) dropLate(batch []Row, late watermark.Time) (lines []string) {
	isLate := map[int64]bool{}
	for key, all := range o.groups {
		o.groups[key] = slices.DeleteFunc(all, func(it *oracleSession) bool {
			if it.old || it.end >= late {
				return false
			}
			for _, row := range it.rows {
				isLate[row.Arrival] = true
			}
			return true
		})
	}
	for _, row := range batch {
		if isLate[row.Arrival] {
			lines = append(lines, fmt.Sprintf("row at %d flag %d", row.Time, Late))
		}
	}
	return lines
}

// each visits sessions in the order in which they come out.
func (o *oracleSessions) each(visit func(key string, it *oracleSession)) {
	type entry struct {
		key string
		it  *oracleSession
	}
	var all []entry
	for key, list := range o.groups {
		for _, it := range list {
			all = append(all, entry{key, it})
		}
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		switch {
		case a.it.end != b.it.end:
			return a.it.end < b.it.end
		case a.it.start != b.it.start:
			return a.it.start < b.it.start
		}
		return a.key < b.key
	})
	for _, e := range all {
		visit(e.key, e.it)
	}
}

// changes gives the rows of update mode, and early ones when the alarm rings, which
// the first change sets.
func (o *oracleSessions) changes(in Instant) (lines []string) {
	o.each(func(_ string, it *oracleSession) { it.stirs = it.stirs || it.changed })
	due := func(it *oracleSession) bool { return o.update && it.changed }
	if o.early > 0 {
		open, stirs := false, false
		o.each(func(_ string, it *oracleSession) {
			stirs = stirs || it.stirs
			open = open || it.stirs && it.end >= in.Close
		})
		if stirs && o.alarm == nil {
			at := in.Wall.Add(o.early)
			o.alarm = &at
		}
		ring := o.alarm != nil && in.Wall >= *o.alarm
		if ring || !open {
			o.alarm = nil
		}
		due = func(it *oracleSession) bool { return ring && it.stirs && it.end >= in.Close }
	}
	o.each(func(key string, it *oracleSession) {
		if due(it) {
			timing := "early"
			if it.end < in.Close {
				timing = "on_time"
			}
			lines = append(lines, o.show(key, it, timing)...)
			it.stirs = false
		}
	})
	return lines
}

// show gives the rows that bring a session out as it is now.
func (o *oracleSessions) show(key string, it *oracleSession, timing string) (lines []string) {
	now := shownRow{bounds: Span{it.start, it.end}, gone: true}
	sort.Slice(it.shown, func(i, j int) bool { return it.shown[i].bounds.Compare(it.shown[j].bounds) < 0 })
	for _, r := range it.shown {
		if r.bounds == now.bounds {
			now = r
		} else if !r.gone {
			lines = append(lines, fmt.Sprintf("[%d,%d) %s delete %d", r.bounds.Start, r.bounds.End, keyText(key), r.revision+1))
		}
	}
	sum := int64(0)
	for _, row := range it.rows {
		sum += row.Args[0].AsInt()
	}
	switch keep := !o.having || sum%3 != 0; {
	case keep:
		now.revision, now.gone = now.revision+1, false
		lines = append(lines, fmt.Sprintf("%s %s %d", it.line(key), timing, now.revision))
	case !now.gone:
		now.revision, now.gone = now.revision+1, true
		lines = append(lines, fmt.Sprintf("[%d,%d) %s delete %d", it.start, it.end, keyText(key), now.revision))
	}
	it.shown = nil
	if now.revision > 0 {
		it.shown = []shownRow{now}
	}
	return lines
}

func (o *oracleSessions) close(w watermark.Time) (lines []string) {
	closed := func(it *oracleSession) bool { return it.end < w || w == watermark.EndOfTime }
	o.each(func(key string, it *oracleSession) {
		if closed(it) && !o.update {
			lines = append(lines, o.show(key, it, "on_time")...)
		}
	})
	for key, all := range o.groups {
		o.groups[key] = slices.DeleteFunc(all, closed)
	}
	return lines
}

// line is the row of a session without timing and revision.
func (it *oracleSession) line(key string) string {
	rows := slices.Clone(it.rows)
	sort.Slice(rows, func(i, j int) bool {
		if rows[i].Time != rows[j].Time {
			return rows[i].Time < rows[j].Time
		}
		return rows[i].Arrival < rows[j].Arrival
	})
	sum, list := int64(0), []string{}
	for _, row := range rows {
		sum += row.Args[0].AsInt()
		list = append(list, fmt.Sprint(row.Args[0].AsInt()))
	}
	return fmt.Sprintf("[%d,%d) %s %d %d [%s]", it.start, it.end, keyText(key), len(rows), sum, strings.Join(list, ","))
}

func keyText(key string) []byte {
	v, _, err := agg.DecodeKey([]byte(key))
	if err != nil {
		panic(err)
	}
	return v.AppendJSON(nil)
}
