package windowing

import (
	"fmt"
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// KeyedConfig is what a keyed state operator is made of.
type KeyedConfig struct {
	Name string // the operator's name, part of every row key
	// Key, OnEvent and OnTimer are Bloblang, part of the definition.
	Key, OnEvent, OnTimer string
	// TTL is how long after its last row, in event time, a key is dropped with its
	// timers. 0: it stays until the code deletes it.
	TTL       time.Duration
	PassLate  bool // `late: pass`: late rows go on down the chain
	Evaluator KeyedEvaluator
}

// KeyedEvaluator runs the code of a keyed state operator. The operator's goroutine
// calls it, once for each row in time and once for each timer that fires. What it
// gives follows from what it is given, so that a step that is repeated after a
// crash gives the same. An error leaves no trace in the state.
type KeyedEvaluator interface {
	// Event is called for a row of the key.
	Event(call KeyedCall, row *Row) (KeyedEffect, error)
	// Timer is called for a timer of the key that fires.
	Timer(call KeyedCall, timer KeyedTimer) (KeyedEffect, error)
}

// KeyedCall is what the code sees of its key. Key may be kept during the call only.
type KeyedCall struct {
	Key       []byte         // canonical, see agg.DecodeKey
	State     string         // as the code has given it, "": none
	Watermark watermark.Time // W as it was before the step for a row, as it is after it for a timer; watermark.Unset: none yet
}

// KeyedEffect is what the code wants. The operator keeps it.
type KeyedEffect struct {
	Set    bool // else the state stays
	State  string
	Rows   []Message    // to be emitted: what Binding.Render finds in Result.Message
	Timers []KeyedTimer // to be set, each in the place of one of its name
}

// KeyedTimer is a timer of a key. Its name is unique in its key.
type KeyedTimer struct {
	Name       string
	At         watermark.Time
	Processing bool // At is a time of the wall clock
}

// String says which timer it is, for errors.
func (t KeyedTimer) String() string {
	if t.Processing {
		return fmt.Sprintf("%q at %s, processing time", t.Name, t.At)
	}
	return fmt.Sprintf("%q at %s", t.Name, t.At)
}

// Keyed keeps a state for each key and runs the user's code over it: for each row
// that is in time, in the order of arrival, and for timers. Rows are consumed; what
// the code emits comes out.
//
// At the end of a step the timers with time <= close fire in the order (time, key,
// registration), then those of the wall clock that are due by it. A timer that the
// code sets when one fires must be later than that one, or, where one follows event
// time and the other the wall clock, later than what its own clock shows: else a
// step might never end. A key whose largest event time + TTL is <= close is dropped,
// after its timers of that time. Deleting the state deletes the timers that exist,
// not those set by the same call. A key without state and timers is forgotten.
//
// At the end of time the timers that exist fire, those of the wall clock too and
// behind the others, and what the code sets then is ignored: a timer that sets
// another one would never come to an end.
//
// A call that fails leaves no trace. A row goes on as invalid; a timer is gone, and
// a row with the error comes out in its place. So does one for each timer that was
// refused, while the rest of its call counts.
//
// Rows have the numbers of their call in their row keys: every row that was applied
// and every timer that was set takes the next one. They never come again, so that a
// timer which an end of the input has fired before its time has the same row keys
// when it really fires.
//
// With a bound on memory (Bounded) keys that are on disk leave it, those that were
// not asked for lately first, and a filter tells most keys that are not there. An
// index on disk says when an event-time timer wants a key back. Keys with timers of
// the wall clock stay in memory.
//
// Invariants: a row that is older than the close that was reached is late whatever
// pair the operator hears later (reached); a key on disk stands in the index no later
// than its first timer of event time; one that is gone is in memory (buried) until its
// record is deleted.
type Keyed struct {
	resident
	away     keyedAway
	config   KeyedConfig
	identity *Identity
	keys     map[string]*keyedKey
	event    timerHeap // timers of event time, and when keys are dropped
	wall     timerHeap // timers of the wall clock
	reached  watermark.Time
	number   int64 // the last one that was given to a call or a timer
	progress bool  // reached or number changed since the last Save

	changed []*keyedKey // to be saved, and some that are gone
	rest    []byte
	payload []byte
	record  []byte
}

var (
	_ Operator = (*Keyed)(nil)
	_ Alarmed  = (*Keyed)(nil)
	_ Bounded  = (*Keyed)(nil)
)

// keyedKey is a key with its state.
type keyedKey struct {
	key    string // canonical
	state  string // "": none
	last   watermark.Time
	timers []*keyTimer
	expiry *keyTimer // with a TTL, once a row has come
	stored bool
	dirty  bool // in changed
	gone   bool
	listed bool // in the filter
	asked  bool // for, since the last look at it

	weight  int64          // bytes in memory, as far as that was noted
	indexed watermark.Time // its place in the index, watermark.Unset: none
	saved   int64          // the Save that wrote it, where it is not dirty
}

// NewKeyed makes an operator without keys. A configuration that cannot be is a
// mistake of the program and panics.
func NewKeyed(cfg KeyedConfig) *Keyed {
	if cfg.Evaluator == nil || cfg.TTL < 0 {
		panic(fmt.Sprintf("windowing: keyed state %q has a ttl of %s and the evaluator %v", cfg.Name, cfg.TTL, cfg.Evaluator))
	}
	return &Keyed{config: cfg, identity: NewIdentity(cfg.Name), keys: map[string]*keyedKey{}, reached: watermark.Unset}
}

// Process runs the code for the rows that are in time, one after the other.
func (k *Keyed) Process(in Instant, rows []Row, out *Output) {
	late := max(in.Late, k.reached)
	for i := range rows {
		row := &rows[i]
		switch {
		case row.Flag != Data:
			out.Pass(*row)
		case row.Time < late:
			out.Late(*row, k.config.Name, late.Sub(row.Time), k.config.PassLate)
		default:
			if !k.apply(late, row, out) {
				return
			}
		}
	}
}

// apply runs the code for a row. It says false where the disk could not be read.
func (k *Keyed) apply(late watermark.Time, row *Row, out *Output) (ok bool) {
	it, err := k.find(row.Key)
	if err != nil {
		out.Break(err)
		return false
	}
	call := KeyedCall{Key: row.Key, Watermark: late}
	if it != nil {
		call.State = it.state
	}
	effect, err := k.config.Evaluator.Event(call, row)
	if err != nil {
		out.Fail(*row, err)
		return true
	}
	if it == nil {
		it = &keyedKey{key: string(row.Key), last: row.Time, indexed: watermark.Unset}
		k.enter(it)
	}
	it.last = max(it.last, row.Time)
	origin := keyedOrigin{number: k.next(), time: row.Time}
	k.change(it, &effect)
	for _, t := range effect.Timers {
		k.set(it, t)
	}
	k.settle(it)
	if len(effect.Rows) > 0 {
		origin.key = []byte(it.key)
		k.emit(&origin, effect.Rows, out)
	}
	return true
}

// next gives a number that was not there before.
func (k *Keyed) next() int64 {
	k.number++
	k.progress = true
	return k.number
}

// change gives a key the state that the code wants. Without one its timers go.
func (k *Keyed) change(it *keyedKey, effect *KeyedEffect) {
	if !effect.Set {
		return
	}
	it.state = effect.State
	if it.state == "" {
		for _, t := range it.timers {
			k.heapOf(t).remove(t)
		}
		clear(it.timers)
		it.timers = it.timers[:0]
	}
}

// settle sees to the key after a call: it is forgotten where nothing is left of it,
// else it is saved, and dropped when it falls silent.
func (k *Keyed) settle(it *keyedKey) {
	if it.state == "" && len(it.timers) == 0 {
		k.forget(it)
		return
	}
	k.touch(it)
	if k.config.TTL > 0 {
		k.expire(it)
	}
	k.weigh(it)
}

// expire puts off the time at which a key is dropped.
func (k *Keyed) expire(it *keyedKey) {
	at := watermark.EndOfTime // nothing but the end of time drops it
	if it.last <= watermark.Max-watermark.Time(k.config.TTL) {
		at = it.last + watermark.Time(k.config.TTL)
	}
	if it.expiry == nil {
		it.expiry = &keyTimer{owner: it, kind: expiryTimer, at: at, number: lastNumber}
		k.event.push(it.expiry)
		return
	}
	it.expiry.at = at
	k.event.moved(it.expiry)
}

// forget drops a key with its timers.
func (k *Keyed) forget(it *keyedKey) {
	for _, t := range it.timers {
		k.heapOf(t).remove(t)
	}
	if it.expiry != nil {
		k.event.remove(it.expiry)
	}
	it.timers, it.expiry, it.gone = nil, nil, true
	delete(k.keys, it.key)
	k.weigh(it)
	k.bury(it)
	k.touch(it)
}

// touch notes that a key has to be saved, or its record to be deleted.
func (k *Keyed) touch(it *keyedKey) {
	if !it.dirty {
		it.dirty = true
		k.changed = append(k.changed, it)
	}
}

// Definition is what makes the stored state meaningful.
func (k *Keyed) Definition() []Setting {
	c := &k.config
	settings := []Setting{{Field: "key", Value: c.Key}, {Field: "on_event", Value: c.OnEvent}, layout}
	if c.OnTimer != "" {
		settings = append(settings, Setting{Field: "on_timer", Value: c.OnTimer})
	}
	if c.TTL > 0 {
		settings = append(settings, Setting{Field: "ttl", Value: c.TTL.String()})
	}
	return settings
}

// Sizes gives the timers that wait, as far as they are in memory, and the keys that
// have state or timers.
func (k *Keyed) Sizes() (timers, keys int) {
	timers = len(k.event) + len(k.wall)
	if k.config.TTL > 0 { // each key has one more, for its end
		timers -= len(k.keys)
	}
	return timers, len(k.keys) + k.away.count
}
