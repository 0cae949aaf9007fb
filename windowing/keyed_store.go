package windowing

import (
	"fmt"
	"slices"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// The records of a keyed state.
//
//	p               progress: the close that was reached, and the last number
//	k <key>         a key: its state, its largest event time, its place in the index,
//	                and its timers
//	t <time> <key>  the index: when event time wants a key, or earlier; empty
//
// The key is canonical, which ends it. The order in which timers fire is not stored:
// Load makes it anew, and the index is for those who do not read everything.
const (
	keyedTable   = 'k'
	keyedIndex   = 't'
	keyedVersion = 2
)

// Save writes the keys that changed, deletes those that are gone and notes how far
// the operator has come.
func (k *Keyed) Save(out kv.Writer) {
	if k.away.cleared {
		k.away.cleared = false
		for _, table := range []byte{keyedTable, keyedIndex} {
			out.Delete([]byte{table}, []byte{table + 1})
		}
	}
	for _, it := range k.changed {
		if it.gone && it.stored {
			k.payload = append(append(k.payload[:0], keyedTable), it.key...)
			k.rest = append(append(k.rest[:0], k.payload...), 0)
			out.Delete(k.payload, k.rest)
			k.saveIndex(out, it, watermark.Unset)
			if k.bounded() {
				k.away.buried[it.key] = k.saves
				k.away.graves = append(k.away.graves, grave{it.key, k.saves})
			}
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
	k.saves++
}

// saveIndex gives a key another place in the index, watermark.Unset: none.
func (k *Keyed) saveIndex(out kv.Writer, it *keyedKey, at watermark.Time) {
	if it.indexed == at {
		return
	}
	if it.indexed != watermark.Unset {
		k.payload = append(kv.AppendTime(append(k.payload[:0], keyedIndex), it.indexed), it.key...)
		k.rest = append(append(k.rest[:0], k.payload...), 0)
		out.Delete(k.payload, k.rest)
	}
	if it.indexed = at; at != watermark.Unset {
		k.rest = append(kv.AppendTime(append(k.rest[:0], keyedIndex), at), it.key...)
		out.Put(k.rest, k.framed(k.payload[:0]))
	}
}

func (k *Keyed) saveKey(out kv.Writer, it *keyedKey) {
	k.saveIndex(out, it, k.place(it))
	k.rest = append(append(k.rest[:0], keyedTable), it.key...)
	b := kv.AppendBlob(k.payload[:0], it.state)
	b = kv.AppendVarint(b, int64(it.last))
	b = kv.AppendVarint(b, int64(it.indexed))
	for _, t := range it.timers {
		b = kv.AppendBlob(b, t.name)
		b = append(b, byte(t.kind))
		b = kv.AppendVarint(kv.AppendVarint(b, int64(t.at)), t.number)
	}
	it.stored, it.saved = true, k.saves
	out.Put(k.rest, k.framed(b))
}

// framed makes a record of a payload, both in memory that is used again.
func (k *Keyed) framed(payload []byte) []byte {
	k.payload = payload
	k.record = kv.AppendRecord(k.record[:0], keyedVersion, payload)
	return k.record
}

// Load reads what Save wrote. The error names the record and wraps kv.ErrCorrupt or
// agg.ErrKey. With a bound nothing stays in memory but keys with timers of the wall
// clock: the filter is made.
func (k *Keyed) Load(r kv.Reader) error {
	if err := k.loadProgress(r); err != nil {
		return fmt.Errorf("record of the progress: %w", err)
	}
	var hashes []uint64
	from := []byte{keyedTable}
	err := r.Scan(from, kv.PrefixEnd(from), func(key, value []byte) error {
		it, err := k.decode(key[1:], value)
		if err != nil {
			return recordError(key, err)
		}
		if !k.bounded() || slices.ContainsFunc(it.timers, func(t *keyTimer) bool { return t.kind == wallTimer }) {
			k.restore(it)
			return nil
		}
		if hashes = append(hashes, hashOfKey(key[1:])); len(hashes) == filterChunk {
			k.away.enlist(hashes)
			hashes = hashes[:0]
		}
		return nil
	})
	if err != nil {
		return err
	}
	if k.bounded() {
		k.away.enlist(hashes)
		k.away.more, k.away.next = true, watermark.Min
		k.held += k.away.filter.bytes()
		return nil
	}
	from = []byte{keyedIndex}
	return r.Scan(from, kv.PrefixEnd(from), func(key, value []byte) error {
		if _, _, err := k.decodeIndex(key, value); err != nil {
			return recordError(key, err)
		}
		return nil
	})
}

// enlist notes keys that are away from the beginning.
func (a *keyedAway) enlist(hashes []uint64) {
	a.count += len(hashes)
	a.listed += len(hashes)
	a.filter.reserve(len(hashes))
	for _, h := range hashes {
		a.filter.add(h)
	}
}

// decodeIndex reads a place in the index.
func (k *Keyed) decodeIndex(key, value []byte) (at watermark.Time, name []byte, err error) {
	if at, name, err = kv.Time[watermark.Time](key[1:]); err != nil {
		return 0, nil, err
	}
	_, rest, err := agg.DecodeKey(name)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes behind the key: %w", len(rest), kv.ErrCorrupt)
	}
	if err != nil {
		return 0, nil, err
	}
	d, err := openRecord(value, keyedVersion)
	if err != nil {
		return 0, nil, err
	}
	return at, name, d.Done()
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

// decode makes a key of its record.
func (k *Keyed) decode(key, value []byte) (*keyedKey, error) {
	_, rest, err := agg.DecodeKey(key)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes behind the key: %w", len(rest), kv.ErrCorrupt)
	}
	d, err := openRecord(value, keyedVersion)
	if err != nil {
		return nil, err
	}
	it := &keyedKey{key: string(key), state: d.String(), last: watermark.Time(d.Varint()), indexed: watermark.Time(d.Varint()), stored: true, saved: onDisk}
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
	return it, d.Done()
}

// eventTime says that t is a time and none of the names for what is beyond them.
func eventTime(t watermark.Time) bool { return t >= watermark.Min && t <= watermark.Max }
