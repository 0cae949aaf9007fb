package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// lane holds the records of a partition from their arrival until they are
// acknowledged. It lives from the assignment of the partition to its loss and
// belongs to the shelf.
type lane struct {
	topic     string
	partition int32

	chunks [][]*kgo.Record // fetched, in the order of their offsets, none empty
	bytes  int             // of those
	flight flight
	again  []*parcel // refused, in the order of their offsets
	at     time.Time // when the first of again is due

	next   int64 // the offset of the record that should come in next, unknown at first
	end    int64 // the end of the partition as of the last fetch
	paused bool  // the client does not fetch it
	frozen bool  // nothing is handed out any more
	closed bool  // acknowledgements do not count any more
	queued bool  // it stands in the queue of the shelf
}

// put appends records that were fetched.
func (l *lane) put(records []*kgo.Record, end int64) {
	l.end = max(l.end, end)
	if len(records) == 0 {
		return
	}
	l.chunks = append(l.chunks, records)
	for _, r := range records {
		l.bytes += recordSize(r)
	}
	l.next = records[len(records)-1].Offset + 1
}

// ready reports whether something can be handed out once now is at or past the
// due time; window is how many bytes may be in flight before the next batch, 0 for
// nothing at all.
func (l *lane) ready(window int) bool {
	switch {
	case l.frozen:
		return false
	case len(l.again) > 0:
		return true
	}
	return len(l.chunks) > 0 && (l.flight.waiting == 0 || l.flight.bytes < window)
}

// take gives the next parcel of at most yield bytes and most records, 0 being any
// number, or of one record.
func (l *lane) take(yield, most int) *parcel {
	if len(l.again) > 0 {
		p := l.again[0]
		l.again = l.again[1:]
		p.end = l.end
		return p
	}
	p := &parcel{lane: l, end: l.end}
	chunk := l.chunks[0]
	n := 0
	for n < len(chunk) {
		size := recordSize(chunk[n])
		if n > 0 && (p.bytes+size > yield || n == most) {
			break
		}
		p.bytes += size
		n++
	}
	p.records, p.first, p.last = chunk[:n:n], chunk[0].Offset, behind(chunk[n-1])
	if l.chunks[0] = chunk[n:]; n == len(chunk) {
		l.chunks[0] = nil
		l.chunks = l.chunks[1:]
	}
	l.bytes -= p.bytes
	l.flight.add(p)
	return p
}

// refuse puts a parcel back that is to be offered again, in the order of offsets.
func (l *lane) refuse(p *parcel) {
	i := len(l.again)
	for i > 0 && l.again[i-1].records[0].Offset > p.records[0].Offset {
		i--
	}
	l.again = append(l.again, nil)
	copy(l.again[i+1:], l.again[i:])
	l.again[i] = p
}

// recordSize is what a record counts for in the limits.
func recordSize(r *kgo.Record) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return max(n, 1)
}

// position is the first offset that is not acknowledged, -1 where nothing was
// acknowledged or came in yet.
func (l *lane) position() int64 {
	switch {
	case l.flight.moved:
		return l.flight.position.Offset
	case len(l.flight.parcels) > 0:
		return l.flight.parcels[0].first
	case len(l.chunks) > 0:
		return l.chunks[0][0].Offset
	}
	return -1
}
