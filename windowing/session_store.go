package windowing

import (
	"cmp"
	"fmt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// The records of a session operator.
//
//	p                       progress: the close that was reached
//	e                       when early rows come out by the wall clock
//	s <group> <id>          a session: its bounds, what is out for it, its accumulators
//	s <group> <id> <number> a chunk of the accumulators that grow, once they are large
//
// The group is canonical, which ends it; the id is the arrival of the session's
// first row and stays when the bounds move. What belongs to a session is one
// range. The order in which sessions close is not stored: Load makes it anew.
const (
	sessionTable = 's'
	// Version 1 knew no rows that were taken back under the bounds that hold.
	sessionVersion = 2
)

// inlineLimit is up to how many bytes accumulators that grow stand in the record
// of their session. It is written with every change.
const inlineLimit = 1 << 10

// sessionName names the records of a session.
type sessionName struct {
	group string
	id    int64
}

// storedSession says what of a session is in the store.
type storedSession struct {
	there  bool
	chunks uint32
	whole  int // bytes of the first chunk
	since  int // bytes of the others
}

// Save writes the sessions that changed, deletes those that are gone and notes
// the close that was reached.
func (s *Session) Save(out kv.Writer) {
	for _, name := range s.gone {
		s.key, s.to = appendSessionKey(s.key[:0], name), appendSessionKey(s.to[:0], sessionName{name.group, name.id + 1})
		out.Delete(s.key, s.to)
	}
	s.gone = s.gone[:0]
	for _, it := range s.changed {
		if it.group != nil {
			s.saveSession(out, it)
		}
		it.dirty = false
	}
	clear(s.changed)
	s.changed = s.changed[:0]
	if s.progress {
		out.Put([]byte{progressTable}, s.framed(kv.AppendVarint(s.payload[:0], int64(s.reached))))
		s.progress = false
	}
	if s.alarm.changed {
		s.alarm.save(out, s.framed(kv.AppendVarint(s.payload[:0], int64(s.alarm.at))))
	}
}

func (s *Session) saveSession(out kv.Writer, it *session) {
	s.key = appendSessionKey(s.key[:0], sessionName{it.group.key, it.id})
	if s.grows {
		s.saveGrowing(out, it)
	}
	b := kv.AppendVarint(s.payload[:0], int64(it.bounds.Start))
	b = kv.AppendVarint(b, int64(it.bounds.End))
	b = kv.AppendBool(b, it.pending)
	b = kv.AppendUvarint(b, uint64(len(it.shown)))
	for _, r := range it.shown {
		b = kv.AppendVarint(b, int64(r.bounds.Start))
		b = kv.AppendVarint(b, int64(r.bounds.End))
		b = kv.AppendBool(kv.AppendVarint(b, r.revision), r.gone)
	}
	b = kv.AppendUvarint(b, uint64(it.stored.chunks))
	for i, acc := range it.accumulators {
		if !s.growing[i] || it.stored.chunks == 0 {
			b = acc.Append(b)
		}
	}
	out.Put(s.key, s.framed(b))
	it.stored.there = true
}

// saveGrowing writes what is new of accumulators that grow as one more chunk.
// When the chunks behind the first have become as large as that, all are written
// anew as one: every byte is written about twice, whatever the number of commits.
func (s *Session) saveGrowing(out kv.Writer, it *session) {
	stored := &it.stored
	if stored.chunks > 0 && stored.since < stored.whole {
		b := s.payload[:0]
		for i, acc := range it.accumulators {
			if s.growing[i] {
				b = acc.(agg.Growing).AppendNew(b)
			}
		}
		stored.since += len(b)
		s.putChunk(out, it, b)
		return
	}
	b := s.payload[:0]
	for i, acc := range it.accumulators {
		if s.growing[i] {
			b = acc.Append(b)
		}
	}
	s.payload = b
	if stored.chunks == 0 && len(b) <= inlineLimit {
		return
	}
	if stored.chunks > 0 {
		s.to = appendSessionKey(s.to[:0], sessionName{it.group.key, it.id + 1})
		out.Delete(s.key, s.to)
	}
	*stored = storedSession{there: true, whole: len(b)}
	s.putChunk(out, it, b)
}

// putChunk writes a chunk under s.key, which it leaves as it is.
func (s *Session) putChunk(out kv.Writer, it *session, payload []byte) {
	prefix := len(s.key)
	s.key = kv.AppendUint32(s.key, it.stored.chunks)
	out.Put(s.key, s.framed(payload))
	s.key = s.key[:prefix]
	it.stored.chunks++
	for i, acc := range it.accumulators {
		if s.growing[i] {
			acc.(agg.Growing).Saved()
		}
	}
}

// framed makes a record of a payload, both in memory that is used again.
func (s *Session) framed(payload []byte) []byte {
	s.payload = payload
	s.record = kv.AppendRecord(s.record[:0], sessionVersion, payload)
	return s.record
}

func appendSessionKey(b []byte, name sessionName) []byte {
	return kv.AppendInt64(append(append(b, sessionTable), name.group...), name.id)
}

// Load reads what Save wrote. The error names the record and wraps
// kv.ErrCorrupt, agg.ErrState or agg.ErrKey.
func (s *Session) Load(r kv.Reader) error {
	data, err := r.Get([]byte{progressTable})
	if err != nil {
		return err
	}
	if data != nil {
		d, _, err := openSessionRecord(data)
		if err == nil {
			s.reached = watermark.Time(d.Varint())
			err = d.Done()
		}
		if err != nil {
			return fmt.Errorf("record of the progress: %w", err)
		}
	}
	if data, err = r.Get([]byte{alarmTable}); err == nil && data != nil {
		var d *kv.Decoder
		if d, _, err = openSessionRecord(data); err == nil {
			err = s.alarm.load(d)
		}
	}
	if err != nil {
		return fmt.Errorf("record of early rows: %w", err)
	}
	l := sessionLoad{Session: s}
	from := []byte{sessionTable}
	if err := r.Scan(from, kv.PrefixEnd(from), l.record); err != nil {
		return err
	}
	return l.finish()
}

// sessionLoad is the session whose chunks are being read.
type sessionLoad struct {
	*Session
	it      *session
	want    uint32 // its chunks
	version byte   // of its record
}

func (l *sessionLoad) record(key, value []byte) error {
	if err := l.load(key, value); err != nil {
		return fmt.Errorf("record %.80q: %w", key, err)
	}
	return nil
}

func (l *sessionLoad) load(key, value []byte) error {
	name, rest, err := l.splitKey(key)
	if err != nil {
		return err
	}
	d, version, err := openSessionRecord(value)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return l.chunk(name, rest, d.Rest())
	}
	if err := l.finish(); err != nil {
		return err
	}
	l.version = version
	it := &session{id: name.id, stored: storedSession{there: true}}
	if err := l.decode(it, d); err != nil {
		return err
	}
	return l.enter(it, name.group)
}

// finish says whether all chunks of the session were there.
func (l *sessionLoad) finish() error {
	if l.it != nil && l.it.stored.chunks != l.want {
		return fmt.Errorf("record of session %d: %d chunks of %d are there: %w", l.it.id, l.it.stored.chunks, l.want, kv.ErrCorrupt)
	}
	return nil
}

// splitKey takes a key apart; rest is the number of a chunk.
func (s *Session) splitKey(key []byte) (name sessionName, rest []byte, err error) {
	rest = key[1:]
	for range s.config.GroupBy {
		if _, rest, err = agg.DecodeKey(rest); err != nil {
			return name, nil, err
		}
	}
	name.group = string(key[1 : len(key)-len(rest)])
	name.id, rest, err = kv.Int64(rest)
	return name, rest, err
}

// decode reads the record of a session.
func (l *sessionLoad) decode(it *session, d *kv.Decoder) (err error) {
	it.bounds = Span{Start: watermark.Time(d.Varint()), End: watermark.Time(d.Varint())}
	it.pending = d.Bool()
	for range d.Count(3) {
		row := shownRow{bounds: Span{Start: watermark.Time(d.Varint()), End: watermark.Time(d.Varint())}, revision: d.Varint()}
		if l.version > 1 {
			row.gone = d.Bool()
		}
		it.shown = append(it.shown, row)
	}
	chunks := d.Uvarint()
	if it.bounds.Start < watermark.Min || it.bounds.End <= it.bounds.Start || !l.within(it.bounds) || chunks > 1<<31 || chunks > 0 && !l.grows {
		d.Fail("no session from %d to %d with %d chunks", it.bounds.Start, it.bounds.End, chunks)
	}
	if d.Err() != nil {
		return d.Err()
	}
	l.it, l.want = it, uint32(chunks)
	rest := d.Rest()
	it.accumulators = make([]agg.Accumulator, len(l.config.Aggregates))
	for i, a := range l.config.Aggregates {
		if l.growing[i] && chunks > 0 {
			continue
		}
		if it.accumulators[i], rest, err = a.Call.Function.Decode(a.Call, rest); err != nil {
			return fmt.Errorf("aggregate %q: %w", a.Name, err)
		}
	}
	return kv.NewDecoder(rest).Done()
}

// enter puts a session that was read among the others.
func (l *sessionLoad) enter(it *session, group string) error {
	g := l.groups[group]
	if g == nil {
		g = newSessionGroup(group)
		l.groups[group] = g
	}
	if l.joinable(g, it.bounds) >= 0 {
		return fmt.Errorf("the session touches another one: %w", kv.ErrCorrupt)
	}
	it.group = g
	g.insert(it)
	l.closings.push(it)
	if it.pending {
		l.pending++
		l.unshown, l.ordered = append(l.unshown, it), false
	}
	return nil
}

// chunk reads one chunk into the accumulators that grow.
func (l *sessionLoad) chunk(name sessionName, number, data []byte) error {
	d := kv.NewDecoder(number)
	n := d.Fixed32()
	if err := d.Done(); err != nil {
		return err
	}
	it := l.it
	if it == nil || cmp.Compare(it.group.key, name.group) != 0 || it.id != name.id || n != it.stored.chunks || n >= l.want {
		return fmt.Errorf("chunk %d has no place: %w", n, kv.ErrCorrupt)
	}
	size := len(data)
	for i, a := range l.config.Aggregates {
		if !l.growing[i] {
			continue
		}
		part, rest, err := a.Call.Function.Decode(a.Call, data)
		if err != nil {
			return fmt.Errorf("aggregate %q: %w", a.Name, err)
		}
		data = rest
		if n == 0 {
			it.accumulators[i] = part
		} else {
			it.accumulators[i].Merge(part)
		}
		it.accumulators[i].(agg.Growing).Saved()
	}
	it.stored.chunks++
	if n == 0 {
		it.stored.whole = size
	} else {
		it.stored.since += size
	}
	return kv.NewDecoder(data).Done()
}

func openSessionRecord(data []byte) (d *kv.Decoder, version byte, err error) {
	version, payload, err := kv.Record(data)
	if err != nil {
		return nil, version, err
	}
	if version < 1 || version > sessionVersion {
		return nil, version, unknownVersion(version, sessionVersion)
	}
	return kv.NewDecoder(payload), version, nil
}
