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
//	p                       progress: the close that was reached, and where keys
//	                        keep a row how far those have come out
//	k <last> <key>          a key: when it goes, the arrival of its first row, and
//	                        the row that is kept, if one is
//	k <last> <key> <time>   the same, where the event time belongs to the key
//
// last is the end of the segment in which the key goes. The key is canonical, which
// ends it. Records of keys that are over stay until their segment is, which is one
// range; no key that counts has two. The order in which keys go is not stored: Load
// makes it anew.
const (
	dedupeTable   = 'k'
	dedupeVersion = 2
)

// Save writes the keys that came or changed, deletes the segments that are gone and
// notes the close that was reached.
func (d *Dedupe) Save(out kv.Writer) {
	for _, last := range d.doomed {
		d.key = appendSegment(d.key[:0], dedupeTable, last)
		out.Delete(d.key, kv.PrefixEnd(d.key))
	}
	d.doomed = d.doomed[:0]
	for _, k := range d.changed {
		k.dirty = false
		if !k.gone {
			d.saveKey(out, k)
		}
	}
	clear(d.changed)
	d.changed = d.changed[:0]
	if d.progress {
		b := kv.AppendVarint(d.payload[:0], int64(d.reached))
		if d.config.KeepLast {
			b = kv.AppendVarint(kv.AppendVarint(b, int64(d.passed.at)), d.passed.arrival)
		}
		out.Put([]byte{progressTable}, d.framed(b))
		d.progress = false
	}
	d.saves++
}

func (d *Dedupe) saveKey(out kv.Writer, k *known) {
	d.key = append(appendSegment(d.key[:0], dedupeTable, k.segment.last), k.key...)
	b := kv.AppendVarint(d.payload[:0], int64(k.until))
	b = kv.AppendVarint(b, k.arrival)
	if c := k.last; c != nil {
		b = kv.AppendVarint(kv.AppendVarint(b, int64(c.time)), c.arrival)
		b = kv.AppendVarint(b, int64(c.source))
		b = append(b, c.payload...)
	}
	k.segment.stored, k.saved = true, d.saves
	out.Put(d.key, d.framed(b))
}

// framed makes a record of a payload, both in memory that is used again.
func (d *Dedupe) framed(payload []byte) []byte {
	d.payload = payload
	d.record = kv.AppendRecord(d.record[:0], dedupeVersion, payload)
	return d.record
}

// Load reads what Save wrote. The error names the record and wraps kv.ErrCorrupt,
// agg.ErrKey or what the codec says. With a bound nothing stays in memory: the
// filters are made.
func (d *Dedupe) Load(r kv.Reader) (err error) {
	if err = d.loadProgress(r); err != nil {
		return fmt.Errorf("record of the progress: %w", err)
	}
	var hashes []uint64 // of the keys of a segment that are away
	var s *segment[*known]
	enlist := func() {
		if s != nil {
			s.enlist(hashes)
			s.away, hashes = len(hashes), hashes[:0]
			d.held += s.filter.bytes()
		}
	}
	from := []byte{dedupeTable}
	err = r.Scan(from, kv.PrefixEnd(from), func(key, value []byte) error {
		last, rest, err := kv.Time[watermark.Time](key[1:])
		var k *known
		if err == nil {
			k, err = d.decode(rest, value)
		}
		if err == nil && k.last != nil {
			_, err = d.config.Codec.Decode([]byte(k.last.payload))
		}
		if err != nil {
			return recordError(key, err)
		}
		if s == nil || s.last != last {
			enlist()
			s = d.segments.at(last)
			s.stored = true
		}
		if k.segment = s; d.over(k) {
			return nil
		}
		if !d.bounded() {
			d.remember(k)
			return nil
		}
		s.first = min(s.first, k.until)
		hashes = append(hashes, hashOfKey(rest))
		return nil
	})
	enlist()
	return err
}

// appendSegment appends what the keys of the records of a segment begin with.
func appendSegment(b []byte, table byte, last watermark.Time) []byte {
	return kv.AppendTime(append(b, table), last)
}

func (d *Dedupe) loadProgress(r kv.Reader) error {
	data, err := r.Get([]byte{progressTable})
	if err != nil || data == nil {
		return err
	}
	dec, err := openRecord(data, dedupeVersion)
	if err != nil {
		return err
	}
	d.reached = watermark.Time(dec.Varint())
	if d.config.KeepLast {
		d.passed = instant{watermark.Time(dec.Varint()), dec.Varint()}
	}
	return dec.Done()
}

// decode makes a key of a record; key is without what stands for the segment.
func (d *Dedupe) decode(key, value []byte) (*known, error) {
	_, rest, err := agg.DecodeKey(key)
	if err != nil {
		return nil, err
	}
	end := kv.NewDecoder(rest)
	if d.config.WithEventTime {
		end.Int64()
	}
	if err := end.Done(); err != nil {
		return nil, err
	}
	dec, err := openRecord(value, dedupeVersion)
	if err != nil {
		return nil, err
	}
	k := &known{key: string(key), until: watermark.Time(dec.Varint()), arrival: dec.Varint(), saved: onDisk}
	if !d.config.KeepLast {
		return k, dec.Done()
	}
	k.last, err = readCandidate(dec)
	return k, err
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
