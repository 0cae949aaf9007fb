package host

import (
	"fmt"
	"slices"
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// Reply is a row that goes back to the caller of Apply. It derives from the
// message Entry of the batch.
type Reply struct {
	Entry   int
	Message windowing.Message
}

// place is a position without its payload.
type place struct {
	partition string
	offset    int64
	part      int32
}

func placeOf(p Position) place { return place{p.Partition, p.Offset, p.Part} }

// replies is the bounded log of the rows that a processor gave back, by the
// position of the message that they derive from. A source that redelivers a
// message, because its rows were not delivered, gets them again.
type replies struct {
	edge    Edge
	limit   int64
	horizon time.Duration
	log     []*logged // by seq
	first   uint64    // seq of log[0]
	next    uint64
	places  map[place][]uint64
	bytes   int64
	saved   uint64 // rows before it are in the store
	trimmed uint64 // rows before it are removed from the store
	lost    int64  // rows trimmed by size
}

type logged struct {
	at    place
	data  []byte // the message, as Edge.Append wrote it
	since time.Duration
}

func newReplies(edge Edge, limit int64, horizon time.Duration) *replies {
	return &replies{edge: edge, limit: limit, horizon: horizon, first: 1, next: 1, saved: 1, trimmed: 1, places: map[place][]uint64{}}
}

// add logs a row under the position it derives from.
func (r *replies) add(at Position, m windowing.Message, now time.Duration) {
	if !at.Known {
		return
	}
	row := &logged{at: placeOf(at), data: r.edge.Append(nil, m), since: now}
	r.push(row)
	r.trim(now)
}

func (r *replies) push(row *logged) {
	r.log = append(r.log, row)
	r.places[row.at] = append(r.places[row.at], r.next)
	r.next++
	r.bytes += int64(len(row.data))
}

// again gives a row of the log. It stays there for another horizon: an output that fails
// for longer has its rows sent again and again.
func (r *replies) again(seq uint64, now time.Duration) (windowing.Message, error) {
	row := r.log[seq-r.first]
	row.since = now
	m, err := r.edge.Decode(row.data)
	if err != nil {
		return nil, fmt.Errorf("reply log row %d: %w", seq, err)
	}
	return m, nil
}

// trim forgets the oldest rows beyond the bounds.
func (r *replies) trim(now time.Duration) {
	for len(r.log) > 0 {
		row := r.log[0]
		old := now-row.since > r.horizon
		if !old && r.bytes <= r.limit {
			return
		}
		if !old {
			r.lost++
		}
		seqs := r.places[row.at]
		if len(seqs) == 1 {
			delete(r.places, row.at)
		} else {
			r.places[row.at] = seqs[1:]
		}
		r.bytes -= int64(len(row.data))
		r.log[0] = nil
		r.log = r.log[1:]
		r.first++
	}
}

// save writes what changed since the last save.
func (r *replies) save(w kv.Writer) {
	if r.first > r.trimmed {
		w.Delete(outKey(r.trimmed), outKey(r.first))
		r.trimmed = r.first
	}
	for seq := max(r.saved, r.first); seq < r.next; seq++ {
		row := r.log[seq-r.first]
		b := kv.AppendVarint(kv.AppendBlob(nil, row.at.partition), row.at.offset)
		b = kv.AppendVarint(b, int64(row.at.part))
		put(w, outKey(seq), append(b, row.data...))
	}
	r.saved = r.next
}

func (r *replies) load(reader kv.Reader, now time.Duration) error {
	return reader.Scan(nil, nil, func(key, value []byte) error {
		seq, rest, err := kv.Uint64(key)
		if err != nil || len(rest) > 0 {
			return fmt.Errorf("reply log: key %x is damaged", key)
		}
		payload, err := open(value)
		if err != nil {
			return fmt.Errorf("reply log row %d: %w", seq, err)
		}
		d := kv.NewDecoder(payload)
		row := &logged{at: place{d.String(), d.Varint(), int32(d.Varint())}, since: now}
		if err := d.Err(); err != nil {
			return fmt.Errorf("reply log row %d: %w", seq, err)
		}
		row.data = slices.Clone(d.Rest())
		if len(r.log) == 0 {
			r.first, r.next, r.trimmed = seq, seq, seq
		}
		if seq != r.next {
			return fmt.Errorf("reply log row %d: row %d is missing", seq, r.next)
		}
		r.push(row)
		r.saved = r.next
		return nil
	})
}
