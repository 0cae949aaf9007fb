package windowing

import (
	"fmt"
	"math"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// The records of a deduplication.
//
//	p               progress: the close that was reached
//	k <key>         a key: when it goes, the arrival of its first row, and the row
//	                that is kept, if one is
//	k <key> <time>  the same, where the event time belongs to the key
//
// The key is canonical, which ends it. The order in which keys go is not stored:
// Load makes it anew.
const (
	dedupeTable   = 'k'
	dedupeVersion = 1
)

// Save writes the keys that came or changed, deletes those that are gone and notes
// the close that was reached.
func (d *Dedupe) Save(out kv.Writer) {
	for _, k := range d.gone {
		if now := d.keys[k.key]; now != nil && now.dirty {
			continue // the key is back, and its record is written below
		}
		d.key = append(append(d.key[:0], dedupeTable), k.key...)
		d.rest = append(append(d.rest[:0], d.key...), 0)
		out.Delete(d.key, d.rest)
	}
	clear(d.gone)
	d.gone = d.gone[:0]
	for _, k := range d.changed {
		k.dirty = false
		if !k.gone {
			d.saveKey(out, k)
		}
	}
	clear(d.changed)
	d.changed = d.changed[:0]
	if d.progress {
		out.Put([]byte{progressTable}, d.framed(kv.AppendVarint(d.payload[:0], int64(d.reached))))
		d.progress = false
	}
}

func (d *Dedupe) saveKey(out kv.Writer, k *known) {
	d.key = append(append(d.key[:0], dedupeTable), k.key...)
	b := kv.AppendVarint(d.payload[:0], int64(k.until))
	b = kv.AppendVarint(b, k.arrival)
	if c := k.last; c != nil {
		b = kv.AppendVarint(kv.AppendVarint(b, int64(c.time)), c.arrival)
		b = kv.AppendVarint(b, int64(c.source))
		b = append(b, c.payload...)
	}
	k.stored = true
	out.Put(d.key, d.framed(b))
}

// framed makes a record of a payload, both in memory that is used again.
func (d *Dedupe) framed(payload []byte) []byte {
	d.payload = payload
	d.record = kv.AppendRecord(d.record[:0], dedupeVersion, payload)
	return d.record
}

// Load reads what Save wrote. The error names the record and wraps kv.ErrCorrupt,
// agg.ErrKey or what the codec says.
func (d *Dedupe) Load(r kv.Reader) (err error) {
	if d.reached, err = loadReached(r, dedupeVersion); err != nil {
		return err
	}
	from := []byte{dedupeTable}
	return r.Scan(from, kv.PrefixEnd(from), func(key, value []byte) error {
		if err := d.load(key[1:], value); err != nil {
			return fmt.Errorf("record %.80q: %w", key, err)
		}
		return nil
	})
}

func (d *Dedupe) load(key, value []byte) error {
	_, rest, err := agg.DecodeKey(key)
	if err != nil {
		return err
	}
	end := kv.NewDecoder(rest)
	if d.config.WithEventTime {
		end.Int64()
	}
	if err := end.Done(); err != nil {
		return err
	}
	dec, err := openRecord(value, dedupeVersion)
	if err != nil {
		return err
	}
	k := &known{key: string(key), until: watermark.Time(dec.Varint()), arrival: dec.Varint(), stored: true}
	if !d.config.KeepLast {
		err = dec.Done()
	} else if k.last, err = readCandidate(dec); err == nil {
		_, err = d.config.Codec.Decode([]byte(k.last.payload))
	}
	if err != nil {
		return err
	}
	d.keys[k.key] = k
	d.due.push(k)
	return nil
}

func readCandidate(d *kv.Decoder) (*candidate, error) {
	c := &candidate{time: watermark.Time(d.Varint()), arrival: d.Varint()}
	source := d.Varint()
	if c.time < watermark.Min || c.time > watermark.Max || source < -1 || source > math.MaxInt32 {
		d.Fail("row at %d of source %d", c.time, source)
	}
	if d.Err() != nil {
		return nil, d.Err()
	}
	c.source, c.payload = int32(source), string(d.Rest())
	return c, nil
}
