package processors

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// rendered is a row that the last stage of a chain has written: nobody looks at it
// before it is handed over. A close makes many of them at once, of which each waits
// for the disk and for its turn; a message with its metadata takes ten times as much
// memory, so that it is made when the row is read, see minter.
type rendered struct {
	payload []byte          // JSON, not to be changed
	mark    *windowing.Mark // from the exit of the chain on
}

const (
	renderedRows  = 128     // rows that lie side by side
	renderedBytes = 8 << 10 // payload bytes that do
)

// renderedRoom is memory for rows. It belongs to one goroutine.
type renderedRoom struct {
	rows  []rendered
	bytes []byte
}

// add makes a row of a copy of a payload.
func (r *renderedRoom) add(payload []byte) *rendered {
	if len(r.rows) == 0 {
		r.rows = make([]rendered, renderedRows)
	}
	row := &r.rows[0]
	r.rows = r.rows[1:]
	n := len(payload)
	if n > renderedBytes/8 {
		row.payload = slices.Clip(slices.Clone(payload))
		return row
	}
	if n > cap(r.bytes)-len(r.bytes) {
		r.bytes = make([]byte, 0, renderedBytes)
	}
	from := len(r.bytes)
	r.bytes = append(r.bytes, payload...)
	row.payload = r.bytes[from : from+n : from+n]
	return row
}

// message makes the message of a row.
func (r *rendered) message(texts *markTexts) *service.Message {
	m := service.NewMessage(r.payload)
	markMessage(m, r.mark, texts)
	return m
}

// append writes what edge.Append writes of the message.
func (r *rendered) append(b []byte) []byte {
	m := r.mark
	b = kv.AppendBool(kv.AppendBlob(b, r.payload), false)
	at := len(b)
	b = append(b, 0)
	name := func(key string) {
		b[at]++ // a row has few of them
		b = kv.AppendUvarint(b, shortOf(key).number)
	}
	text := func(key, value string) {
		name(key)
		b = kv.AppendBlob(append(b, kindString), value)
	}
	instant := func(key string, t watermark.Time) {
		name(key)
		b = kv.AppendVarint(append(b, kindInstant), int64(t))
	}
	text(metaOperator, m.Operator)
	if m.RowKey != "" {
		text(metaRowKey, m.RowKey)
		name(metaRowID)
		b = append(b, kindRowID)
		name(metaRevision)
		b = kv.AppendVarint(append(b, kindInt), m.Revision)
	}
	if m.Timing != windowing.NoTiming {
		text(metaTiming, m.Timing.String())
	}
	instant(metaEventTime, m.EventTime)
	if m.Watermark != watermark.Unset {
		instant(metaWatermark, m.Watermark)
	}
	if m.Spanned {
		instant(metaStart, m.Start)
		instant(metaEnd, m.End)
	}
	return kv.AppendBool(b, false) // it carries nothing
}

// alike says that the metadata of two rows differs in what names the row only.
func alike(a, b *windowing.Mark) bool {
	return a.End == b.End && a.Start == b.Start && a.EventTime == b.EventTime && a.Watermark == b.Watermark &&
		a.Timing == b.Timing && a.Spanned == b.Spanned && a.Operator == b.Operator && (a.RowKey == "") == (b.RowKey == "")
}

// How a row is packed. The numbers are part of the format.
const (
	packedMessage = 0 // its key, its revision and a message as edge.Append wrote it
	packedRow     = 1 // a rendered row
	packedAlike   = 2 // a rendered row whose marks are those of the row before
)

var _ host.Packer = edge{}

// Pack implements host.Packer. A rendered row is written as what differs from the
// row before: neighbours are of one window mostly.
func (e edge) Pack(b []byte, p host.Parcel, before windowing.Message) []byte {
	r, ok := p.Message.(*rendered)
	if !ok {
		b = kv.AppendVarint(kv.AppendBlob(append(b, packedMessage), p.Key), p.Revision)
		return e.Append(b, p.Message)
	}
	key, payload := "", []byte(nil)
	old, _ := before.(*rendered)
	if old != nil {
		key, payload = old.mark.RowKey, old.payload
	}
	if old != nil && alike(old.mark, r.mark) {
		b = append(b, packedAlike)
	} else {
		b = appendMark(append(b, packedRow), r.mark)
	}
	b = kv.AppendVarint(b, r.mark.Revision)
	b = appendDifference(b, key, r.mark.RowKey)
	return appendDifference(b, payload, r.payload)
}

// appendMark encodes what neighbours share.
func appendMark(b []byte, m *windowing.Mark) []byte {
	b = kv.AppendUvarint(kv.AppendBlob(b, m.Operator), uint64(m.Timing))
	b = kv.AppendBool(b, m.Spanned)
	for _, t := range [...]watermark.Time{m.Start, m.End, m.EventTime, m.Watermark} {
		b = kv.AppendVarint(b, int64(t))
	}
	return b
}

func readMark(d *kv.Decoder) *windowing.Mark {
	m := &windowing.Mark{Operator: d.String()}
	if timing := d.Uvarint(); timing > uint64(windowing.Deleted) {
		d.Fail("no timing has the number %d", timing)
	} else {
		m.Timing = windowing.Timing(timing)
	}
	m.Spanned = d.Bool()
	for _, t := range [...]*watermark.Time{&m.Start, &m.End, &m.EventTime, &m.Watermark} {
		*t = watermark.Time(d.Varint())
	}
	return m
}

// Unpack implements host.Packer.
func (e edge) Unpack(data []byte, before windowing.Message) (p host.Parcel, err error) {
	d := kv.NewDecoder(data)
	kind := d.Byte()
	if kind == packedMessage {
		p.Key, p.Revision = d.String(), d.Varint()
		if err = d.Err(); err == nil {
			p.Message, err = e.Decode(d.Rest())
		}
		return p, err
	}
	old, _ := before.(*rendered)
	r := &rendered{}
	switch {
	case kind == packedRow:
		r.mark = readMark(d)
	case kind == packedAlike && old != nil:
		mark := *old.mark
		r.mark = &mark
	default:
		d.Fail("no row is packed as %d here", kind)
		return p, d.Err()
	}
	key, payload := "", []byte(nil)
	if old != nil {
		key, payload = old.mark.RowKey, old.payload
	}
	r.mark.Revision = d.Varint()
	r.mark.RowKey = string(readDifference(d, key))
	r.payload = readDifference(d, payload)
	return host.Parcel{Message: r, Key: r.mark.RowKey, Revision: r.mark.Revision}, d.Done()
}

// appendDifference encodes a text by the one before: how long both begin and how
// long they end as one, and what stands between.
func appendDifference[T ~string | ~[]byte](b []byte, before, text T) []byte {
	most := min(len(before), len(text))
	head := sameHead(before[:most], text[:most])
	tail := 0
	for tail < most-head && before[len(before)-1-tail] == text[len(text)-1-tail] {
		tail++
	}
	b = kv.AppendUvarint(kv.AppendUvarint(b, uint64(head)), uint64(tail))
	return kv.AppendBlob(b, text[head:len(text)-tail])
}

// sameHead is the length of what two texts of one length have in common before they
// differ.
func sameHead[T ~string | ~[]byte](a, b T) (n int) {
	var x, y [8]byte
	for ; n+8 <= len(a); n += 8 {
		copy(x[:], a[n:])
		copy(y[:], b[n:])
		if d := binary.LittleEndian.Uint64(x[:]) ^ binary.LittleEndian.Uint64(y[:]); d != 0 {
			return n + bits.TrailingZeros64(d)/8
		}
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// readDifference reads appendDifference into memory of its own.
func readDifference[T ~string | ~[]byte](d *kv.Decoder, before T) []byte {
	head, tail, middle := d.Uvarint(), d.Uvarint(), d.Bytes()
	size := uint64(len(before))
	if head > size || tail > size-head {
		d.Fail("%d and %d bytes of the %d before", head, tail, size)
		return nil
	}
	text := make([]byte, 0, head+tail+uint64(len(middle)))
	text = append(append(text, before[:head]...), middle...)
	return append(text, before[size-tail:]...)
}

// Keep implements host.Packer.
func (e edge) Keep(m windowing.Message) windowing.Message {
	r, ok := m.(*rendered)
	if !ok {
		return m
	}
	mark := *r.mark
	mark.RowKey = strings.Clone(mark.RowKey)
	return &rendered{payload: slices.Clone(r.payload), mark: &mark}
}
