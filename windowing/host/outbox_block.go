package host

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// block is a record of the outbox: rows that came out one after the other. One
// record for each row would cost the store more than the row itself. The record
// goes with the last of its rows; where some are delivered and others are not, it is
// written again without those that are.
type block struct {
	first, end uint64 // its rows have numbers in [first, end); first is its key
	rows       []*out // in the record as it stands in the store, ascending
	left       int    // of them, those that are not delivered
}

const (
	blockVersion = 2        // of the record; recordVersion holds a single row
	blockRows    = 125      // in a block at most: a delivery takes eight
	blockBytes   = 64 << 10 // a block takes no further row then
)

// Parcel is a row in the outbox.
type Parcel struct {
	Message  windowing.Message
	Key      string // row key, "" where the row has none
	Revision int64
}

// Packer is implemented by an Edge that knows how to write rows in less room where
// it knows the row before. It is called by the owner only.
type Packer interface {
	// Pack appends a row to b, to be read by Unpack in a later run. before is the
	// message before it in the same record, nil: it is the first.
	Pack(b []byte, p Parcel, before windowing.Message) []byte
	// Unpack reads a row. before is what it gave for the one before. It may keep data.
	Unpack(data []byte, before windowing.Message) (Parcel, error)
	// Keep gives a message that stays while those that left with it go: it must not
	// hold their memory.
	Keep(m windowing.Message) windowing.Message
}

// plainPacker packs rows by the Edge alone.
type plainPacker struct{ Edge }

// Pack implements Packer.
func (p plainPacker) Pack(b []byte, row Parcel, _ windowing.Message) []byte {
	return p.Append(kv.AppendVarint(kv.AppendBlob(b, row.Key), row.Revision), row.Message)
}

// Unpack implements Packer.
func (p plainPacker) Unpack(data []byte, _ windowing.Message) (row Parcel, err error) {
	d := kv.NewDecoder(data)
	row.Key, row.Revision = d.String(), d.Varint()
	if err = d.Err(); err == nil {
		row.Message, err = p.Decode(d.Rest())
	}
	return row, err
}

// Keep implements Packer.
func (plainPacker) Keep(m windowing.Message) windowing.Message { return m }

// packerOf gives the way in which the rows of an edge are packed.
func packerOf(edge Edge) Packer {
	if p, ok := edge.(Packer); ok {
		return p
	}
	return plainPacker{edge}
}

func outKey(seq uint64) []byte { return kv.AppendUint64(nil, seq) }

// save writes the rows emitted and removed since the last save, and gives the
// emitted ones, which may leave once the write set is on disk.
func (o *outbox) save(w kv.Writer) []*out {
	for rows := o.staged; len(rows) > 0; {
		b := o.cut(rows)
		rows = rows[len(b.rows):]
		o.put(w, b)
	}
	o.saveSettled(w)
	staged := o.staged
	o.staged, o.saving = nil, len(staged)
	return staged
}

// cut makes a block of the first rows, as many as go into one, and leaves its
// payload in o.payload.
func (o *outbox) cut(rows []*out) *block {
	b := &block{first: rows[0].seq}
	o.payload = o.payload[:0]
	var before *out
	n := 0
	for n < min(len(rows), blockRows) && len(o.payload) < blockBytes {
		row := rows[n]
		row.block = b
		o.append(b, row, before)
		before = row
		n++
	}
	b.rows, b.left, b.end = rows[:n:n], n, before.seq+1
	return b
}

// append appends a row to the payload of a block.
func (o *outbox) append(b *block, row, before *out) {
	from, old := b.first, windowing.Message(nil)
	if before != nil {
		from, old = before.seq+1, before.message
	}
	o.row = o.packer.Pack(o.row[:0], Parcel{row.message, row.key, row.revision}, old)
	o.payload = kv.AppendBlob(kv.AppendUvarint(o.payload, row.seq-from), o.row)
}

// put writes a block whose payload is in o.payload.
func (o *outbox) put(w kv.Writer, b *block) {
	o.key = kv.AppendUint64(o.key[:0], b.first)
	o.record = kv.AppendRecord(o.record[:0], blockVersion, o.payload)
	w.Put(o.key, o.record)
}

// saved takes the rows that save gave, once they are on disk.
func (o *outbox) saved(rows []*out) {
	if len(o.ready) == 0 {
		o.ready = nil // the memory of those before
	}
	o.ready = append(o.ready, rows...)
	o.saving = 0
}

// saveSettled removes delivered rows: blocks of which nothing is left, neighbours in
// one range.
func (o *outbox) saveSettled(w kv.Writer) {
	var touched []*block
	for _, row := range o.settled {
		b := row.block
		if b.left == len(b.rows) {
			touched = append(touched, b)
		}
		b.left--
	}
	clear(o.settled)
	o.settled = o.settled[:0]
	slices.SortFunc(touched, func(a, b *block) int { return cmp.Compare(a.first, b.first) })
	for i := 0; i < len(touched); i++ {
		b := touched[i]
		if b.left > 0 {
			o.rewrite(w, b)
			continue
		}
		first := b.first
		for i+1 < len(touched) && touched[i+1].left == 0 && touched[i+1].first == b.end {
			i++
			b = touched[i]
		}
		w.Delete(outKey(first), outKey(b.end))
	}
}

// rewrite writes a block without its delivered rows.
func (o *outbox) rewrite(w kv.Writer, b *block) {
	rows := make([]*out, 0, b.left)
	o.payload = o.payload[:0]
	var before *out
	for _, row := range b.rows {
		if row.gone {
			continue
		}
		o.append(b, row, before)
		rows = append(rows, row)
		before = row
	}
	b.rows = rows
	o.put(w, b)
}

// load reads the rows that an earlier run did not deliver.
func (o *outbox) load(r kv.Reader) error {
	return r.Scan(nil, nil, func(key, value []byte) error {
		b, err := o.read(key, value)
		if err != nil {
			return err
		}
		o.ready = append(o.ready, b.rows...)
		o.next = b.end
		for _, row := range b.rows {
			o.track(row)
		}
		return nil
	})
}

// read reads a record.
func (o *outbox) read(key, value []byte) (*block, error) {
	first, rest, err := kv.Uint64(key)
	if err != nil || len(rest) > 0 {
		return nil, fmt.Errorf("outbox: key %x is damaged", key)
	}
	version, payload, err := kv.Record(value)
	if err != nil {
		return nil, fmt.Errorf("outbox row %d: %w", first, err)
	}
	b := &block{first: first, end: first}
	payload = slices.Clone(payload) // messages keep it
	switch version {
	case recordVersion:
		var p Parcel
		if p, err = (plainPacker{o.edge}).Unpack(payload, nil); err == nil {
			b.add(first, p)
		}
	case blockVersion:
		err = o.readBlock(b, kv.NewDecoder(payload))
	default:
		err = fmt.Errorf("record version %d, this build reads %d and %d", version, recordVersion, blockVersion)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("outbox row %d: %w", b.end, err)
	case first < o.next && len(o.ready) > 0:
		return nil, fmt.Errorf("outbox row %d: it is in the record before too: %w", first, kv.ErrCorrupt)
	}
	return b, nil
}

// readBlock reads the rows of a block.
func (o *outbox) readBlock(b *block, d *kv.Decoder) error {
	var before windowing.Message
	for more := true; more; more = d.Len() > 0 {
		gap, data := d.Uvarint(), d.Bytes()
		if seq := b.end + gap; seq < b.end || seq+1 == 0 {
			d.Fail("a number of a row %d behind %d", gap, b.end)
		}
		if err := d.Err(); err != nil {
			return err
		}
		p, err := o.packer.Unpack(data, before)
		if err != nil {
			return err
		}
		b.add(b.end+gap, p)
		before = p.Message
	}
	return nil
}

// add puts a row that was read behind the others.
func (b *block) add(seq uint64, p Parcel) {
	b.rows = append(b.rows, &out{seq: seq, message: p.Message, key: p.Key, revision: p.Revision, block: b})
	b.left, b.end = len(b.rows), seq+1
}
