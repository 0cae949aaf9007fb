package windowing

import (
	"fmt"
	"math"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// The records of a join.
//
//	p                           progress: the close that was reached
//	r <key> <side> <arrival>    a row: its time, its matches, the bytes of its message
//	r <key> <side> <arrival> m  its matches, where they have changed since
//
// The key is canonical, which ends it. What belongs to a row is one range, and a
// match does not write its message again. The order of eviction is not stored:
// Load makes it anew.
const (
	joinTable   = 'r'
	joinMatches = 'm'
	joinVersion = 1
)

// touch notes that a row has to be saved.
func (j *Join) touch(it *joinRow) {
	if !it.dirty {
		it.dirty = true
		j.changed = append(j.changed, it)
	}
}

// Save writes the rows that came or matched, deletes those that are gone and notes
// the close that was reached.
func (j *Join) Save(out kv.Writer) {
	for _, it := range j.gone {
		j.key = it.appendKey(j.key[:0])
		j.rest = append(j.rest[:0], j.key...)
		out.Delete(j.key, append(j.rest, 0xff))
	}
	clear(j.gone)
	j.gone = j.gone[:0]
	for _, it := range j.changed {
		it.dirty = false
		if !it.gone {
			j.saveRow(out, it)
		}
	}
	clear(j.changed)
	j.changed = j.changed[:0]
	if j.progress {
		out.Put([]byte{progressTable}, j.framed(kv.AppendVarint(j.payload[:0], int64(j.reached))))
		j.progress = false
	}
}

func (j *Join) saveRow(out kv.Writer, it *joinRow) {
	j.key = it.appendKey(j.key[:0])
	b := j.payload[:0]
	if it.fresh {
		b = kv.AppendVarint(b, int64(it.time))
	} else {
		j.key = append(j.key, joinMatches)
	}
	b = kv.AppendUvarint(b, uint64(it.matches))
	if it.fresh {
		b = append(b, it.payload...)
	}
	it.fresh = false
	out.Put(j.key, j.framed(b))
}

func (it *joinRow) appendKey(b []byte) []byte {
	b = append(append(append(b, joinTable), it.key.name...), it.side)
	return kv.AppendInt64(b, it.arrival)
}

// framed makes a record of a payload, both in memory that is used again.
func (j *Join) framed(payload []byte) []byte {
	j.payload = payload
	j.record = kv.AppendRecord(j.record[:0], joinVersion, payload)
	return j.record
}

// Load reads what Save wrote. The error names the record and wraps kv.ErrCorrupt
// or agg.ErrKey.
func (j *Join) Load(r kv.Reader) (err error) {
	if j.reached, err = loadReached(r, joinVersion); err != nil {
		return err
	}
	var last *joinRow
	from := []byte{joinTable}
	return r.Scan(from, kv.PrefixEnd(from), func(key, value []byte) error {
		var err error
		if last, err = j.load(last, key, value); err != nil {
			return recordError(key, err)
		}
		return nil
	})
}

// load reads a record; last is the row before it.
func (j *Join) load(last *joinRow, key, value []byte) (*joinRow, error) {
	_, rest, err := agg.DecodeKey(key[1:])
	if err != nil {
		return nil, err
	}
	name := key[1 : len(key)-len(rest)]
	k := kv.NewDecoder(rest)
	it := &joinRow{side: k.Byte()}
	if it.side > RightSide {
		k.Fail("side %d", it.side)
	}
	if k.Err() != nil {
		return nil, k.Err()
	}
	if it.arrival, rest, err = kv.Int64(rest[1:]); err != nil {
		return nil, err
	}
	d, err := openRecord(value, joinVersion)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		if last == nil || string(rest) != string(rune(joinMatches)) || last.key.name != string(name) || last.side != it.side || last.arrival != it.arrival {
			return nil, fmt.Errorf("matches of no row: %w", kv.ErrCorrupt)
		}
		last.matches = readMatches(d)
		return last, d.Done()
	}
	it.time, it.matches = watermark.Time(d.Varint()), readMatches(d)
	if it.time < watermark.Min || it.time > watermark.Max {
		d.Fail("time %d", it.time)
	}
	if d.Err() != nil {
		return nil, d.Err()
	}
	it.payload = string(d.Rest())
	it.shown = it.matches > 0
	j.enter(it, name)
	return it, nil
}

func readMatches(d *kv.Decoder) uint32 {
	n := d.Uvarint()
	if n > math.MaxUint32 {
		d.Fail("%d matches", n)
	}
	return uint32(n)
}

// enter puts a row that was read among the others.
func (j *Join) enter(it *joinRow, name []byte) {
	k := j.keys[string(name)]
	if k == nil {
		k = &joinKey{name: string(name)}
		j.keys[k.name] = k
	}
	it.key = k
	k.insert(it)
	j.due[it.side].push(it)
}

// loadReached reads the close that an operator has reached, Unset where it has
// none.
func loadReached(r kv.Reader, version byte) (watermark.Time, error) {
	data, err := r.Get([]byte{progressTable})
	if err != nil || data == nil {
		return watermark.Unset, err
	}
	d, err := openRecord(data, version)
	if err != nil {
		return watermark.Unset, fmt.Errorf("record of the progress: %w", err)
	}
	reached := watermark.Time(d.Varint())
	if err := d.Done(); err != nil {
		return watermark.Unset, fmt.Errorf("record of the progress: %w", err)
	}
	return reached, nil
}

// recordError names the record that could not be read.
func recordError(key []byte, err error) error { return fmt.Errorf("record %.80q: %w", key, err) }

// openRecord opens a framed record of a version.
func openRecord(data []byte, version byte) (*kv.Decoder, error) {
	got, payload, err := kv.Record(data)
	if err != nil {
		return nil, err
	}
	if got != version {
		return nil, fmt.Errorf("version %d, this build reads %d: %w", got, version, kv.ErrCorrupt)
	}
	return kv.NewDecoder(payload), nil
}
