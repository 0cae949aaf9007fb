package host

import (
	"fmt"
	"slices"
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
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
	next     uint64
	staged   []*out   // emitted, not in a write set yet
	saving   int      // in the write set under way
	ready    []*out   // committed, nobody read them
	retry    []*group // refused, by due
	waiting  int      // rows in retry
	flying   int      // handed over, not settled
	settled  []uint64 // delivered, to be removed with the next commit
	nacked   int64
	revising bool
	latest   map[string]*revisions // by row key, where rows may be revised

	key, payload, record []byte // memory of save
}

// revisions is the newest revision of a row key and the number of its rows here.
type revisions struct {
	newest int64
	rows   int
}

func newOutbox(edge Edge, revising bool) *outbox {
	return &outbox{edge: edge, next: 1, revising: revising, latest: map[string]*revisions{}}
}

// unread is the number of rows that nobody has read, or that came back.
func (o *outbox) unread() int { return len(o.staged) + o.saving + len(o.ready) + o.waiting }

// empty says that everything was delivered and its removal is committed.
func (o *outbox) empty() bool { return o.unread() == 0 && o.flying == 0 && len(o.settled) == 0 }

// stage takes a row that a step emitted.
func (o *outbox) stage(m windowing.Message, key string, revision int64) {
	row := &out{seq: o.next, message: m, key: key, revision: revision}
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
	o.settled = append(o.settled, row.seq)
	if r := o.latest[row.key]; r != nil && o.revising && row.key != "" {
		if r.rows--; r.rows == 0 {
			delete(o.latest, row.key)
		}
	}
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
	if n := min(limit, len(o.ready)); n > 0 {
		return &group{rows: o.ready[:n:n]}
	}
	return nil
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

func outKey(seq uint64) []byte { return kv.AppendUint64(nil, seq) }

// save writes the rows emitted and removed since the last save, and gives the
// emitted ones, which may leave once the write set is on disk.
func (o *outbox) save(w kv.Writer) []*out {
	for _, row := range o.staged {
		o.key = kv.AppendUint64(o.key[:0], row.seq)
		b := kv.AppendVarint(kv.AppendBlob(o.payload[:0], row.key), row.revision)
		o.payload = o.edge.Append(b, row.message)
		o.record = kv.AppendRecord(o.record[:0], recordVersion, o.payload)
		w.Put(o.key, o.record)
	}
	o.saveSettled(w)
	staged := o.staged
	o.staged, o.saving = nil, len(staged)
	return staged
}

// saved takes the rows that save gave, once they are on disk.
func (o *outbox) saved(rows []*out) {
	o.ready = append(o.ready, rows...)
	o.saving = 0
}

// saveSettled removes delivered rows, neighbours in one range.
func (o *outbox) saveSettled(w kv.Writer) {
	slices.Sort(o.settled)
	for i := 0; i < len(o.settled); {
		j := i + 1
		for j < len(o.settled) && o.settled[j] == o.settled[j-1]+1 {
			j++
		}
		w.Delete(outKey(o.settled[i]), outKey(o.settled[j-1]+1))
		i = j
	}
	o.settled = o.settled[:0]
}

// load reads the rows that an earlier run did not deliver.
func (o *outbox) load(r kv.Reader) error {
	return r.Scan(nil, nil, func(key, value []byte) error {
		seq, rest, err := kv.Uint64(key)
		if err != nil || len(rest) > 0 {
			return fmt.Errorf("outbox: key %x is damaged", key)
		}
		payload, err := open(value)
		if err != nil {
			return fmt.Errorf("outbox row %d: %w", seq, err)
		}
		d := kv.NewDecoder(payload)
		row := &out{seq: seq, key: d.String(), revision: d.Varint()}
		if err := d.Err(); err != nil {
			return fmt.Errorf("outbox row %d: %w", seq, err)
		}
		if row.message, err = o.edge.Decode(slices.Clone(d.Rest())); err != nil {
			return fmt.Errorf("outbox row %d: %w", seq, err)
		}
		o.ready = append(o.ready, row)
		o.next = max(o.next, seq+1)
		o.track(row)
		return nil
	})
}
