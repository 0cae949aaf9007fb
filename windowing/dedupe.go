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
	Within         time.Duration
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
// Invariants: the time at which a key goes never changes, so that keys leave the
// heap by its top only; a row that is older than the close that was reached is
// late whatever pair the operator hears later (reached).
type Dedupe struct {
	config   DedupeConfig
	identity *Identity
	keys     map[string]*known
	due      minHeap[*known]
	reached  watermark.Time
	progress bool // reached changed since the last Save

	changed []*known // to be saved, and some that are gone
	gone    []*known // whose records are to be deleted
	key     []byte
	rest    []byte
	payload []byte
	record  []byte
}

var _ Operator = (*Dedupe)(nil)

// known is a key that is remembered.
type known struct {
	key     string         // canonical, with the event time behind it where that belongs to it
	until   watermark.Time // it goes when close is there
	arrival int64          // of its first row
	last    *candidate     // with KeepLast
	stored  bool
	dirty   bool // in changed
	gone    bool
}

// candidate is the row that comes out when its key goes.
type candidate struct {
	time    watermark.Time
	arrival int64
	source  int32
	payload string
}

var _ earlier[*known] = (*known)(nil)

// before is the order in which keys go.
func (k *known) before(other *known) bool {
	if k.until != other.until {
		return k.until < other.until
	}
	return k.arrival < other.arrival
}

// NewDedupe makes an operator that remembers nothing yet. A configuration that
// cannot be is a mistake of the program and panics.
func NewDedupe(cfg DedupeConfig) *Dedupe {
	if cfg.KeepLast && (cfg.Codec == nil || cfg.Within < 0 && !cfg.WithEventTime) {
		panic(fmt.Sprintf("windowing: deduplication %q cannot keep the last row", cfg.Name))
	}
	return &Dedupe{config: cfg, identity: NewIdentity(cfg.Name), keys: map[string]*known{}, reached: watermark.Unset}
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
			d.look(row, out)
		}
	}
}

// look looks a row's key up.
func (d *Dedupe) look(row *Row, out *Output) {
	d.key = append(d.key[:0], row.Key...)
	if d.config.WithEventTime {
		d.key = kv.AppendTime(d.key, row.Time)
	}
	k := d.keys[string(d.key)]
	if k == nil {
		k = &known{key: string(d.key), until: d.until(row), arrival: row.Arrival}
		d.keys[k.key] = k
		d.due.push(k)
		d.touch(k)
		if d.config.KeepLast {
			k.last = d.candidate(row)
		} else {
			d.deliver(row, out)
		}
		return
	}
	if !d.config.KeepLast || row.Time < k.last.time {
		out.Duplicate(*row, d.config.Name, d.config.PassDuplicates)
		return
	}
	d.supersede(k.last, out)
	k.last = d.candidate(row)
	d.touch(k)
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

// Advance forgets the keys whose time is over, in the order (time, first row), and
// emits the rows that were kept. What is gone is no longer state, so that a
// restart goes on with the rest.
func (d *Dedupe) Advance(in Instant, limit int, out *Output) (done bool) {
	if in.Close > d.reached {
		d.reached, d.progress = in.Close, true
	}
	budget := limit * silentPerResult
	for len(d.due) > 0 && d.due[0].until <= d.reached {
		if budget <= 0 {
			return false
		}
		k := d.due.pop()
		delete(d.keys, k.key)
		k.gone = true
		if k.stored {
			d.gone = append(d.gone, k)
		}
		budget--
		if k.last != nil {
			out.Emit(d.result(k))
			budget -= silentPerResult - 1
		}
	}
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
	settings := []Setting{{Field: "key", Value: c.Key}}
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

// Sizes gives the keys that are remembered.
func (d *Dedupe) Sizes() (windows, groups int) { return 0, len(d.keys) }
