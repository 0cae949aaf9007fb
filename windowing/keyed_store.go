package windowing

import (
	"fmt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// The records of a keyed state.
//
//	p        progress: the close that was reached, and the last number
//	k <key>  a key: its state, its largest event time, and its timers
//
// The key is canonical, which ends it. The order in which timers fire is not stored:
// Load makes it anew.
const (
	keyedTable   = 'k'
	keyedVersion = 1
)

// Save writes the keys that changed, deletes those that are gone and notes how far
// the operator has come.
func (k *Keyed) Save(out kv.Writer) {
	for _, it := range k.changed {
		if it.gone && it.stored {
			k.payload = append(append(k.payload[:0], keyedTable), it.key...)
			k.rest = append(append(k.rest[:0], k.payload...), 0)
			out.Delete(k.payload, k.rest)
		}
	}
	for _, it := range k.changed { // a key that came back is written after its record went
		it.dirty = false
		if !it.gone {
			k.saveKey(out, it)
		}
	}
	clear(k.changed)
	k.changed = k.changed[:0]
	if k.progress {
		b := kv.AppendVarint(k.payload[:0], int64(k.reached))
		out.Put([]byte{progressTable}, k.framed(kv.AppendVarint(b, k.number)))
		k.progress = false
	}
}

func (k *Keyed) saveKey(out kv.Writer, it *keyedKey) {
	k.rest = append(append(k.rest[:0], keyedTable), it.key...)
	b := kv.AppendBlob(k.payload[:0], it.state)
	b = kv.AppendVarint(b, int64(it.last))
	for _, t := range it.timers {
		b = kv.AppendBlob(b, t.name)
		b = append(b, byte(t.kind))
		b = kv.AppendVarint(kv.AppendVarint(b, int64(t.at)), t.number)
	}
	it.stored = true
	out.Put(k.rest, k.framed(b))
}

// framed makes a record of a payload, both in memory that is used again.
func (k *Keyed) framed(payload []byte) []byte {
	k.payload = payload
	k.record = kv.AppendRecord(k.record[:0], keyedVersion, payload)
	return k.record
}

// Load reads what Save wrote. The error names the record and wraps kv.ErrCorrupt or
// agg.ErrKey.
func (k *Keyed) Load(r kv.Reader) error {
	if err := k.loadProgress(r); err != nil {
		return fmt.Errorf("record of the progress: %w", err)
	}
	from := []byte{keyedTable}
	return r.Scan(from, kv.PrefixEnd(from), func(key, value []byte) error {
		if err := k.load(key[1:], value); err != nil {
			return fmt.Errorf("record %.80q: %w", key, err)
		}
		return nil
	})
}

func (k *Keyed) loadProgress(r kv.Reader) error {
	data, err := r.Get([]byte{progressTable})
	if err != nil || data == nil {
		return err
	}
	d, err := openRecord(data, keyedVersion)
	if err != nil {
		return err
	}
	k.reached, k.number = watermark.Time(d.Varint()), d.Varint()
	return d.Done()
}

func (k *Keyed) load(key, value []byte) error {
	_, rest, err := agg.DecodeKey(key)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes behind the key: %w", len(rest), kv.ErrCorrupt)
	}
	d, err := openRecord(value, keyedVersion)
	if err != nil {
		return err
	}
	it := &keyedKey{key: string(key), state: d.String(), last: watermark.Time(d.Varint()), stored: true}
	names := map[string]bool{}
	for d.Err() == nil && d.Len() > 0 {
		t := &keyTimer{owner: it, name: d.String(), kind: timerKind(d.Byte()), at: watermark.Time(d.Varint()), number: d.Varint()}
		if t.kind > wallTimer || !eventTime(t.at) || t.number < 1 || t.number > k.number || names[t.name] {
			d.Fail("timer %.40q of kind %d at %d with number %d", t.name, t.kind, t.at, t.number)
		}
		names[t.name] = true
		it.timers = append(it.timers, t)
	}
	if !eventTime(it.last) || it.state == "" && len(it.timers) == 0 {
		d.Fail("a key at %d with %d timers and a state of %d bytes", it.last, len(it.timers), len(it.state))
	}
	if err := d.Done(); err != nil {
		return err
	}
	k.keys[it.key] = it
	for _, t := range it.timers {
		k.heapOf(t).push(t)
	}
	if k.config.TTL > 0 {
		k.expire(it)
	}
	return nil
}

// eventTime says that t is a time and none of the names for what is beyond them.
func eventTime(t watermark.Time) bool { return t >= watermark.Min && t <= watermark.Max }
