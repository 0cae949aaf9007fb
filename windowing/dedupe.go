package windowing

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// DedupeConfig is what a deduplication is made of.
type DedupeConfig struct {
	Name string // the operator's name, part of every row key
	Key  string // Bloblang, part of the definition
	// Within is how long after its first row a key is remembered, in event time.
	// Below 0 each row says so itself: Row.Args[0] is an Int of nanoseconds. Then
	// KeepLast cannot be.
	Within time.Duration
	// Delay is about how far rows may be behind, 0 where nobody knows: it sizes the
	// pieces in which keys are kept, and may change freely.
	Delay          time.Duration
	DefaultWithin  bool // the user has set none: it may change freely
	WithEventTime  bool // the event time is part of the key, which then goes with it
	KeepLast       bool // the row with the largest event time comes out, when the key goes
	PassDuplicates bool
	PassLate       bool
	Codec          Codec // with KeepLast
}

// Hold is how far rows may lie behind the pair that the operator hears, see
// Stage.Hold.
func (c *DedupeConfig) Hold() time.Duration {
	if c.KeepLast && !c.WithEventTime {
		return c.Within
	}
	return 0
}

// Dedupe lets one row of each key pass: by key within the watermark, as Spark's
// dropDuplicatesWithinWatermark, or by key and event time, as its
// dropDuplicates.
//
// A row older than late is late, before it is looked up. The first row of a key
// passes; the key is remembered until first.t + within <= close, however many
// duplicates come. With the event time in the key it is remembered until t <
// close. A null key is never a duplicate.
//
// With KeepLast nothing passes on arrival. When the key goes, the row with the
// largest event time comes out, at a tie the one that arrived later; the key still
// goes by its first row.
//
// Keys lie in segments by the time at which they go, which go as a whole: a key
// whose time is over counts as forgotten from then on, wherever it still is. With a
// bound on memory (Bounded) keys that are on disk leave it, and their segment has a
// filter that tells most keys which are not there.
//
// Invariants: the time at which a key goes never changes; a row that is older than
// the close that was reached is late whatever pair the operator hears later
// (reached); of the records with one key only one is not over.
type Dedupe struct {
	resident
	config   DedupeConfig
	identity *Identity
	keys     map[string]*known
	segments segments[*known]
	due      minHeap[*known] // with KeepLast: what is in memory
	horizon  instant         // with KeepLast: what goes up to it is in memory
	passed   instant         // with KeepLast: what came out up to it is over
	reached  watermark.Time
	step     int64 // counts Advance from 1, so that a key knows whether one was called since
	progress bool  // reached or passed changed since the last Save

	changed []*known         // to be saved, and some that are over
	doomed  []watermark.Time // segments whose records are to be deleted
	key     []byte
	rest    []byte
	payload []byte
	record  []byte
}

var (
	_ Operator = (*Dedupe)(nil)
	_ Bounded  = (*Dedupe)(nil)
)

// known is a key that is remembered.
type known struct {
	key     string         // canonical, with the event time behind it where that belongs to it
	until   watermark.Time // it goes when close is there
	arrival int64          // of its first row
	born    int64          // step of its first row, 0: before the start
	last    *candidate     // with KeepLast
	segment *segment[*known]
	saved   int64 // the Save that wrote it, where it is not dirty
	dirty   bool  // in changed
	gone    bool  // another one has its key, or it is over
	listed  bool  // in the filter of its segment
}

// candidate is the row that comes out when its key goes.
type candidate struct {
	time    watermark.Time
	arrival int64
	source  int32
	payload string
}

// stands is the order in which keys go.
func (k *known) stands() instant { return instant{k.until, k.arrival} }

var _ earlier[*known] = (*known)(nil)

// before is the order in which keys go.
func (k *known) before(other *known) bool { return k.stands().before(other.stands()) }

// NewDedupe makes an operator that remembers nothing yet. A configuration that
// cannot be is a mistake of the program and panics.
func NewDedupe(cfg DedupeConfig) *Dedupe {
	if cfg.KeepLast && (cfg.Codec == nil || cfg.Within < 0 && !cfg.WithEventTime) {
		panic(fmt.Sprintf("windowing: deduplication %q cannot keep the last row", cfg.Name))
	}
	return &Dedupe{config: cfg, identity: NewIdentity(cfg.Name), keys: map[string]*known{}, reached: watermark.Unset, step: 1,
		horizon: beginning, passed: beginning}
}

// Process lets the first row of each key pass, or keeps the last.
func (d *Dedupe) Process(in Instant, rows []Row, out *Output) {
	late := max(in.Late, d.reached)
	for i := range rows {
		row := &rows[i]
		switch {
		case row.Flag != Data:
			out.Pass(*row)
		case row.Time < late:
			out.Late(*row, d.config.Name, late.Sub(row.Time), d.config.PassLate)
		case bytes.Equal(row.Key, nullKey):
			d.deliver(row, out)
		default:
			if !d.look(row, out) {
				return
			}
		}
	}
}

// look looks a row's key up. It says false where the disk could not be read.
func (d *Dedupe) look(row *Row, out *Output) (ok bool) {
	d.key = append(d.key[:0], row.Key...)
	if d.config.WithEventTime {
		d.key = kv.AppendTime(d.key, row.Time)
	}
	until := d.until(row)
	k, err := d.find()
	if err != nil {
		out.Break(err)
		return false
	}
	if k == nil {
		k = &known{key: string(d.key), until: until, arrival: row.Arrival, born: d.step, segment: d.segments.at(d.segmentOf(until, row.Time))}
		if d.config.KeepLast {
			k.last = d.candidate(row)
		} else {
			d.deliver(row, out)
		}
		d.remember(k)
		d.touch(k)
		return true
	}
	if !d.config.KeepLast || row.Time < k.last.time {
		out.Duplicate(*row, d.config.Name, d.config.PassDuplicates)
		return true
	}
	d.supersede(k.last, out)
	d.held -= k.bytes()
	k.last = d.candidate(row)
	d.held += k.bytes()
	d.touch(k)
	return true
}

// over says that a key is forgotten.
func (d *Dedupe) over(k *known) bool {
	if d.config.KeepLast {
		return !d.passed.before(k.stands())
	}
	return k.until <= d.reached && k.born != d.step // those of a batch are judged after it
}

// until is when the key of its first row goes.
func (d *Dedupe) until(row *Row) watermark.Time {
	within := d.config.Within
	if d.config.WithEventTime {
		within = 1 // t < close
	} else if within < 0 {
		within = time.Duration(row.Args[0].AsInt())
	}
	if row.Time > watermark.Max-watermark.Time(within) {
		return watermark.EndOfTime
	}
	return row.Time + watermark.Time(within)
}

// candidate keeps what is needed of a row.
func (d *Dedupe) candidate(row *Row) *candidate {
	d.payload = d.config.Codec.Encode(d.payload[:0], row.Message)
	return &candidate{time: row.Time, arrival: row.Arrival, source: row.Source, payload: string(d.payload)}
}

// supersede makes a duplicate of a row that was the last one.
func (d *Dedupe) supersede(c *candidate, out *Output) {
	row := Row{Time: c.time, Arrival: c.arrival, Source: c.source, Entry: -1}
	if d.config.PassDuplicates {
		var err error
		if row.Message, err = d.config.Codec.Decode([]byte(c.payload)); err != nil {
			panic(fmt.Sprintf("windowing: %q cannot read what it has kept of a message: %v", d.config.Name, err))
		}
	}
	out.Duplicate(row, d.config.Name, d.config.PassDuplicates)
}

// deliver lets a row pass.
func (d *Dedupe) deliver(row *Row, out *Output) {
	out.Deliver(*row, &Mark{Operator: d.config.Name, Timing: OnTime, Revision: 1, EventTime: row.Time,
		RowKey: d.rowKey(row.Key, row.Time, row.Arrival)})
}

func (d *Dedupe) rowKey(key []byte, at watermark.Time, arrival int64) string {
	d.rest = AppendInstant(d.rest[:0], at)
	d.rest = strconv.AppendInt(append(d.rest, ','), arrival, 10)
	d.payload = d.identity.AppendRowKey(d.payload[:0], key, d.rest)
	return string(d.payload)
}

// touch notes that a key has to be saved.
func (d *Dedupe) touch(k *known) {
	if !k.dirty {
		k.dirty = true
		d.changed = append(d.changed, k)
	}
}

// Advance forgets the keys whose time is over, and emits the rows that were kept, in
// the order (time, first row). What is gone is no longer state, so that a restart
// goes on with the rest.
func (d *Dedupe) Advance(in Instant, limit int, out *Output) (done bool) {
	d.step++
	if in.Close > d.reached {
		d.reached, d.progress = in.Close, true
	}
	budget := limit * silentPerResult
	if d.config.KeepLast {
		for {
			k, err := d.nextDue()
			if err != nil {
				out.Break(err)
				return false
			}
			if k == nil {
				break
			}
			if budget <= 0 {
				return false
			}
			d.due.pop()
			d.forget(k)
			d.passed, d.progress = k.stands(), true
			out.Emit(d.result(k))
			budget -= silentPerResult
		}
	}
	if !d.dropSegments(budget) {
		return false
	}
	d.shed()
	return true
}

// result is the row that was kept for a key.
func (d *Dedupe) result(k *known) *Result {
	c := k.last
	d.key = append(d.key[:0], k.key...)
	if d.config.WithEventTime {
		d.key = d.key[:len(d.key)-8]
	}
	res := &Result{Time: c.time, Timing: OnTime, Revision: 1, Source: c.source + 1, RowKey: d.rowKey(d.key, c.time, c.arrival)}
	if res.Message, res.Err = d.config.Codec.Decode([]byte(c.payload)); res.Err != nil {
		panic(fmt.Sprintf("windowing: %q cannot read what it has kept of a message: %v", d.config.Name, res.Err))
	}
	return res
}

// Definition is what makes the stored state meaningful.
func (d *Dedupe) Definition() []Setting {
	c := &d.config
	settings := []Setting{{Field: "key", Value: c.Key}, layout}
	if !c.DefaultWithin && !c.WithEventTime {
		settings = append(settings, Setting{Field: "within", Value: c.Within.String()})
	}
	if c.WithEventTime {
		settings = append(settings, Setting{Field: "with_event_time", Value: "true"})
	}
	if c.KeepLast {
		settings = append(settings, Setting{Field: "keep", Value: "last"})
	}
	return settings
}

// Sizes gives the keys that are remembered. Of many, some that are over may be among
// them, and of those on disk.
func (d *Dedupe) Sizes() (windows, groups int) {
	groups = len(d.keys) + d.segments.away()
	for _, s := range d.segments {
		if s.first > d.reached || len(s.list) > fewToCount {
			continue
		}
		for _, k := range s.list {
			if !k.gone && d.over(k) {
				groups--
			}
		}
	}
	return 0, groups
}
