package host

import (
	"slices"
	"strings"
	"time"

	"github.com/connect-windowed/connect-windowed/windowing"
)

const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// out is a row on its way out.
type out struct {
	seq      uint64
	message  windowing.Message
	key      string // row key, "" where the row has none
	revision int64
	block    *block // from the save on
	gone     bool   // delivered or superseded
}

// group is a refused set of rows that is offered again as one.
type group struct {
	rows    []*out
	attempt int
	due     time.Time
}

// messages are those of a group that was handed over: its rows stay what they are.
func (g *group) messages() []windowing.Message {
	all := make([]windowing.Message, len(g.rows))
	for i, row := range g.rows {
		all[i] = row.message
	}
	return all
}

// outbox holds the rows that are not delivered yet, in the order in which they
// came out. A refused batch comes back in two halves, down to single rows, so
// that one row that the output never takes does not hold back its neighbours.
type outbox struct {
	edge     Edge
	packer   Packer
	next     uint64
	staged   []*out   // emitted, not in a write set yet
	saving   int      // in the write set under way
	ready    []*out   // committed, nobody read them
	retry    []*group // refused, by due
	waiting  int      // rows in retry
	flying   int      // handed over, not settled
	settled  []*out   // delivered, to be removed with the next commit
	nacked   int64
	revising bool
	latest   map[string]*revisions // by row key, where rows may be revised

	slab                      []out  // memory of the next rows
	key, row, payload, record []byte // memory of save
}

// revisions is the newest revision of a row key and the number of its rows here.
type revisions struct {
	newest int64
	rows   int
}

func newOutbox(edge Edge, revising bool) *outbox {
	return &outbox{edge: edge, packer: packerOf(edge), next: 1, revising: revising, latest: map[string]*revisions{}}
}

// unread is the number of rows that nobody has read, or that came back.
func (o *outbox) unread() int { return len(o.staged) + o.saving + len(o.ready) + o.waiting }

// empty says that everything was delivered and its removal is committed.
func (o *outbox) empty() bool { return o.unread() == 0 && o.flying == 0 && len(o.settled) == 0 }

// stage takes a row that a step emitted.
func (o *outbox) stage(m windowing.Message, key string, revision int64) {
	if len(o.slab) == 0 {
		o.slab = make([]out, blockRows)
	}
	row := &o.slab[0]
	o.slab = o.slab[1:]
	*row = out{seq: o.next, message: m, key: key, revision: revision}
	o.next++
	o.staged = append(o.staged, row)
	o.track(row)
}

func (o *outbox) track(row *out) {
	if !o.revising || row.key == "" {
		return
	}
	r := o.latest[row.key]
	if r == nil {
		r = &revisions{}
		o.latest[row.key] = r
	}
	r.newest, r.rows = max(r.newest, row.revision), r.rows+1
}

// superseded says that a newer revision of the row is here too.
func (o *outbox) superseded(row *out) bool {
	r := o.latest[row.key]
	return r != nil && row.key != "" && r.newest > row.revision
}

// done forgets a row that was delivered or superseded.
func (o *outbox) done(row *out) {
	o.settled = append(o.settled, row)
	if o.revising && row.key != "" {
		if r := o.latest[row.key]; r != nil {
			if r.rows--; r.rows == 0 {
				delete(o.latest, row.key)
			}
		}
	}
	row.gone, row.message, row.key = true, nil, "" // its neighbours may stay for long
}

// take gives the rows to hand over next, at most limit, without removing them.
func (o *outbox) take(limit int, now time.Time) *group {
	for len(o.retry) > 0 && !o.retry[0].due.After(now) {
		g := o.retry[0]
		if o.prune(g); len(g.rows) > 0 {
			return g
		}
		o.retry = o.retry[1:]
	}
	if n := whole(o.ready, limit); n > 0 {
		return &group{rows: o.ready[:n:n]}
	}
	return nil
}

// whole is how many rows to hand over, at most limit: not a part of the last block,
// which would have to be written again without it, unless most would stay behind.
func whole(rows []*out, limit int) int {
	most := min(limit, len(rows))
	n := most
	for n > 0 && n < len(rows) && rows[n].block == rows[n-1].block {
		n--
	}
	if 2*n < most {
		return most
	}
	return n
}

// prune takes the rows out of a refused group whose next revision came while it
// waited: the older one would arrive last.
func (o *outbox) prune(g *group) {
	if !o.revising {
		return
	}
	kept := g.rows[:0]
	for _, row := range g.rows {
		if o.superseded(row) {
			o.done(row)
			o.waiting--
			continue
		}
		kept = append(kept, row)
	}
	g.rows = kept
}

// handed records that a group which take gave is on its way.
func (o *outbox) handed(g *group) {
	o.flying += len(g.rows)
	if len(o.retry) > 0 && o.retry[0] == g {
		o.retry = o.retry[1:]
		o.waiting -= len(g.rows)
		return
	}
	o.ready = o.ready[len(g.rows):]
}

// settle takes what became of a group: failed names its refused rows.
func (o *outbox) settle(g *group, failed []int, now time.Time) {
	o.flying -= len(g.rows)
	bad := make([]*out, 0, len(failed))
	next := 0
	for i, row := range g.rows {
		switch {
		case next >= len(failed) || failed[next] != i:
			o.done(row)
			continue
		case o.superseded(row):
			o.done(row)
		default:
			if g.attempt == 0 {
				row.message, row.key = o.packer.Keep(row.message), strings.Clone(row.key)
			}
			bad = append(bad, row)
		}
		next++
	}
	o.nacked += int64(len(failed))
	if len(bad) == 0 {
		return
	}
	wait := min(firstBackoff<<min(g.attempt, 10), lastBackoff)
	half := (len(bad) + 1) / 2
	for _, rows := range [][]*out{bad[:half], bad[half:]} {
		if len(rows) > 0 {
			o.again(&group{rows: rows, attempt: g.attempt + 1, due: now.Add(wait)})
		}
	}
}

// again puts a group where its turn is.
func (o *outbox) again(g *group) {
	i, _ := slices.BinarySearchFunc(o.retry, g, func(a, b *group) int {
		if a.due.After(b.due) {
			return 1
		}
		return -1 // behind those of the same time
	})
	o.retry = slices.Insert(o.retry, i, g)
	o.waiting += len(g.rows)
}

// due is when the next refused group is offered again.
func (o *outbox) due() (time.Time, bool) {
	if len(o.retry) == 0 {
		return time.Time{}, false
	}
	return o.retry[0].due, true
}
