package windowing

import (
	"fmt"
	"math"
	"slices"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// The records of a join.
//
//	p                                  progress: the close that was reached, and how
//	                                   far the rows of each outer side are evicted
//	r <segment> <key> <arrival>        a left row: its time, its matches, the bytes
//	                                   of its message
//	r <segment> <key> <arrival> m      its matches, where they have changed since
//	s ...                              the same for a right row
//
// A segment is named by its end. The key is canonical, which ends it. What belongs to
// a row is one range, and a match does not write its message again. Records of rows
// that are evicted stay until their segment is, which is one range. The order of
// eviction is not stored: Load makes it anew.
const (
	joinTable   = 'r' // of left rows; those of right rows are in the next one
	joinMatches = 'm'
	joinVersion = 2
)

// touch notes that a row has to be saved.
func (j *Join) touch(it *joinRow) {
	if !it.dirty {
		it.dirty = true
		j.changed = append(j.changed, it)
	}
}

// Save writes the rows that came or matched, deletes the segments that are gone and
// notes the close that was reached.
func (j *Join) Save(out kv.Writer) {
	for side, doomed := range j.doomed {
		for _, last := range doomed {
			j.key = appendSegment(j.key[:0], joinTable+byte(side), last)
			out.Delete(j.key, kv.PrefixEnd(j.key))
		}
		j.doomed[side] = doomed[:0]
	}
	for _, it := range j.gone {
		j.key = it.appendKey(j.key[:0])
		out.Delete(j.key, append(append(j.rest[:0], j.key...), 0xff))
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
		b := kv.AppendVarint(j.payload[:0], int64(j.reached))
		for side, passed := range j.passed {
			if j.outer[side] {
				b = kv.AppendVarint(kv.AppendVarint(b, int64(passed.at)), passed.arrival)
			}
		}
		out.Put([]byte{progressTable}, j.framed(b))
		j.progress = false
	}
	j.saves++
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
	it.fresh, it.saved, it.segment.stored = false, j.saves, true
	out.Put(j.key, j.framed(b))
}

func (it *joinRow) appendKey(b []byte) []byte {
	b = append(appendSegment(b, joinTable+it.side, it.segment.last), it.key.name...)
	return kv.AppendInt64(b, it.arrival)
}

// framed makes a record of a payload, both in memory that is used again.
func (j *Join) framed(payload []byte) []byte {
	j.payload = payload
	j.record = kv.AppendRecord(j.record[:0], joinVersion, payload)
	return j.record
}

// Load reads what Save wrote. The error names the record and wraps kv.ErrCorrupt
// or agg.ErrKey. With a bound nothing stays in memory: the filters are made.
func (j *Join) Load(r kv.Reader) (err error) {
	if err = j.loadProgress(r); err != nil {
		return fmt.Errorf("record of the progress: %w", err)
	}
	for side := range j.segments {
		if err := j.loadSide(r, side); err != nil {
			return err
		}
	}
	return nil
}

func (j *Join) loadProgress(r kv.Reader) error {
	data, err := r.Get([]byte{progressTable})
	if err != nil || data == nil {
		return err
	}
	d, err := openRecord(data, joinVersion)
	if err != nil {
		return err
	}
	j.reached = watermark.Time(d.Varint())
	for side := range j.passed {
		if j.outer[side] {
			j.passed[side] = instant{watermark.Time(d.Varint()), d.Varint()}
		}
	}
	return d.Done()
}

func (j *Join) loadSide(r kv.Reader, side int) error {
	var last *joinRow
	var hashes []uint64 // of the keys of rows that are away
	var s *segment[*joinRow]
	enlist := func() {
		if s != nil {
			s.enlist(slices.Compact(hashes))
			hashes = hashes[:0]
			j.held += s.filter.bytes()
		}
	}
	flush := func() {
		switch {
		case last == nil || j.over(last):
		case j.mayLeave(side):
			s.first = min(s.first, last.time)
			s.away++
			hashes = append(hashes, hashOfKey([]byte(last.key.name)))
		default:
			last.key = j.keyOf([]byte(last.key.name))
			j.enter(last)
		}
	}
	from := []byte{joinTable + byte(side)}
	err := r.Scan(from, kv.PrefixEnd(from), func(key, value []byte) error {
		it, err := j.decode(last, key, value)
		if err != nil {
			return recordError(key, err)
		}
		if it == last {
			return nil
		}
		flush()
		end, _, _ := kv.Time[watermark.Time](key[1:]) // decode has read it
		if s == nil || s.last != end {
			enlist()
			s = j.segments[side].at(end)
			s.stored = true
		}
		it.segment, it.key = s, &joinKey{name: string(it.name(key))}
		last = it
		return nil
	})
	if err == nil {
		flush()
		enlist()
	}
	return err
}

// decode reads a record. A mark belongs to the row before it, last, and gives it
// again; any other row has neither its key nor its segment yet.
func (j *Join) decode(last *joinRow, key, value []byte) (*joinRow, error) {
	_, rest, err := kv.Time[watermark.Time](key[1:])
	if err == nil {
		_, rest, err = agg.DecodeKey(rest)
	}
	if err != nil {
		return nil, err
	}
	it := &joinRow{side: key[0] - joinTable, saved: onDisk}
	if it.arrival, rest, err = kv.Int64(rest); err != nil {
		return nil, err
	}
	d, err := openRecord(value, joinVersion)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		if last == nil || string(rest) != string(rune(joinMatches)) || string(last.appendKey(nil)) != string(key[:len(key)-1]) {
			return nil, fmt.Errorf("matches of no row: %w", kv.ErrCorrupt)
		}
		last.matches = readMatches(d)
		last.shown = last.matches > 0
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
	return it, nil
}

// name is the key in the key of the record of a row.
func (it *joinRow) name(key []byte) []byte { return key[1+8 : len(key)-8] }

func readMatches(d *kv.Decoder) uint32 {
	n := d.Uvarint()
	if n > math.MaxUint32 {
		d.Fail("%d matches", n)
	}
	return uint32(n)
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
