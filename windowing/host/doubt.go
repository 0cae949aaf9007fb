package host

import (
	"fmt"
	"maps"
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// doubt is the last step before the process died, in a host with operators behind it
// that save for themselves: they may have missed its rows. The messages of the step come
// again one after the other and between newer ones, of other partitions, whose rows
// would make the rest late behind. So all rows of the step leave with the first of its
// messages that comes again, and once more each with its own.
type doubt struct {
	from uint64           // its first row in the log
	lows map[string]int64 // its smallest offset, by partition
	name string           // of the partition of the last look-up
	low  int64            // of that partition
}

func newDoubt(from uint64) *doubt { return &doubt{from: from, lows: map[string]int64{}} }

// has says whether an applied position is one of the step. Within a partition messages
// come again in their order.
func (d *doubt) has(p Position) bool {
	if d == nil {
		return false
	}
	low, ok := d.lows[p.Partition]
	return ok && p.Offset >= low
}

// applied records a position of the step.
func (d *doubt) applied(p Position) {
	if len(d.lows) > 0 && d.name == p.Partition && p.Offset >= d.low { // neighbours mostly share it
		return
	}
	low, ok := d.lows[p.Partition]
	if !ok || p.Offset < low {
		low = p.Offset
		d.lows[p.Partition] = low
	}
	d.name, d.low = p.Partition, low
}

// doubts are the step that a crash would leave in doubt now, and the one that the last
// crash did.
type doubts struct {
	last  *doubt              // with what a write set does not hold yet
	saved bool                // last is in a write set
	old   *doubt              // nil: none, or it is through
	given bool                // the rows of old left
	came  bool                // the first of its messages is in this batch
	entry int32               // that message
	own   map[uint64]struct{} // rows of the log that left with their own messages since
}

// begin starts a step, with the row of the log that comes next: whoever comes behind is
// through with the one before. One that logged no row leaves nothing in doubt.
func (d *doubts) begin(next uint64) {
	if d.given {
		d.old, d.given, d.came, d.own = nil, false, false, nil
	}
	if d.last == nil || d.saved || d.last.from == next {
		d.last, d.saved = newDoubt(next), false
	}
}

// fresh records a new position. Where newer messages of a partition come before those of
// the old step, these are acknowledged, and so the step is through.
func (d *doubts) fresh(p Position) {
	if !p.Known {
		return
	}
	d.last.applied(p)
	if !d.given && d.old.has(p) {
		d.old = nil
	}
}

// again records that the message entry of the batch has a position that was applied
// before. It is of the step all the same: a watermark that has forgotten it hears event
// time from it when it comes once more, before the rest of the step.
func (d *doubts) again(entry int32, p Position) {
	d.last.applied(p)
	if !d.given && d.old.has(p) {
		d.given, d.came, d.entry, d.own = true, true, entry, map[uint64]struct{}{}
	}
}

// save writes what would be in doubt.
func (d *doubts) save(w kv.Writer) {
	if d.last == nil { // an old step went on, and nothing came yet
		return
	}
	from, lows := d.last.from, d.last.lows
	if d.old != nil {
		from, lows = d.old.from, maps.Clone(lows)
		for name, low := range d.old.lows {
			if at, ok := lows[name]; !ok || low < at {
				lows[name] = low
			}
		}
	}
	b := kv.AppendUvarint(nil, from)
	for name, low := range lows {
		b = kv.AppendVarint(kv.AppendBlob(b, name), low)
	}
	put(w, []byte(doubtKey), b)
	d.saved = true
}

func (d *doubts) load(r kv.Reader) error {
	payload, err := getRecord(r, doubtKey)
	if err != nil || payload == nil {
		return err
	}
	dec := kv.NewDecoder(payload)
	d.old = newDoubt(dec.Uvarint())
	for dec.Err() == nil && dec.Len() > 0 {
		name := dec.String()
		d.old.lows[name] = dec.Varint()
	}
	if err := dec.Done(); err != nil {
		return fmt.Errorf("record %q: %w", doubtKey, err)
	}
	return nil
}

// replyAgain answers a position that was applied before with its rows.
func (o *owner) replyAgain(b *Batch, entry int32, pos Position, now time.Duration) error {
	if o.config.Again != nil {
		o.doubts.again(entry, pos)
	}
	for _, seq := range o.replies.places[placeOf(pos)] {
		if o.doubts.came {
			o.doubts.own[seq] = struct{}{}
		}
		if err := o.replyLogged(b, entry, seq, now); err != nil {
			return err
		}
	}
	return nil
}

// replyDoubt answers, where the first message of the step in doubt is in the batch, with
// the rows of those that are not.
func (o *owner) replyDoubt(b *Batch, now time.Duration) error {
	d := &o.doubts
	d.came = false
	own := o.answer
	o.answer = nil
	for seq := max(d.old.from, o.replies.first); seq < o.replies.next; seq++ {
		if _, left := d.own[seq]; left {
			continue
		}
		if err := o.replyLogged(b, d.entry, seq, now); err != nil {
			return err
		}
	}
	o.answer = append(o.answer, own...)
	return nil
}

// replyLogged answers with a row of the log.
func (o *owner) replyLogged(b *Batch, entry int32, seq uint64, now time.Duration) error {
	m, err := o.replies.again(seq, now)
	if err != nil {
		return err
	}
	if o.config.Again != nil {
		o.config.Again(m, b.Relayed)
	}
	o.answer = append(o.answer, Reply{Entry: int(entry), Message: m})
	return nil
}
