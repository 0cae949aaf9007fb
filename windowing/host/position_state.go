package host

import (
	"fmt"
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// Sub-keys of a partition, behind its name.
const (
	markKey  = 'm' // mark, ordinal count and hash, fingerprint floor
	runKey   = 'r' // + start: end of a run above the mark
	partsKey = 's' // + offset: number of messages that the offset was split into
	firstKey = 'f' // fingerprints of the first positions
	blockKey = 'b' // + index: a block of fingerprints
)

// save writes what changed since the last save.
func (s *positions) save(w kv.Writer) {
	for _, p := range s.dirty {
		p.save(w)
		p.dirty = false
	}
	s.dirty = s.dirty[:0]
}

func (p *partition) key(kind byte, n int64) []byte {
	k := append(kv.AppendString(nil, p.name), kind)
	if kind == runKey || kind == partsKey || kind == blockKey {
		k = kv.AppendInt64(k, n)
	}
	return k
}

func (p *partition) save(w kv.Writer) {
	b := kv.AppendVarint(nil, p.mark)
	b = kv.AppendVarint(b, p.print.floor)
	b = kv.AppendUint64(b, p.applied)
	put(w, p.key(markKey, 0), b)
	for _, from := range p.goneRuns {
		drop(w, p.key(runKey, from))
	}
	for from := range p.dirtyRuns {
		if i := p.above.find(from); i < len(p.above) && p.above[i].from == from {
			put(w, p.key(runKey, from), kv.AppendVarint(nil, p.above[i].to))
		}
	}
	for _, off := range p.dirtyParts {
		put(w, p.key(partsKey, off), kv.AppendVarint(nil, int64(p.parts[off])))
	}
	p.goneRuns, p.dirtyParts = p.goneRuns[:0], p.dirtyParts[:0]
	clear(p.dirtyRuns)
	p.savePrints(w)
}

func (p *partition) savePrints(w kv.Writer) {
	f := &p.print
	for _, index := range f.gone {
		drop(w, p.key(blockKey, index))
		p.forgetParts(w, index)
	}
	f.gone = f.gone[:0]
	for _, b := range f.dirty {
		b.dirty = false
		if f.blocks[b.index] != b {
			continue
		}
		data := make([]byte, 0, blockSize*4)
		for _, h := range b.hash {
			data = kv.AppendUint32(data, h)
		}
		put(w, p.key(blockKey, b.index), data)
	}
	f.dirty = f.dirty[:0]
	if f.newly {
		f.newly = false
		var data []byte
		for off, h := range f.first {
			data = kv.AppendVarint(data, off)
			data = kv.AppendUint32(data, h)
		}
		put(w, p.key(firstKey, 0), data)
	}
}

// forgetParts drops how the offsets of a block were split, but for those that have
// fingerprints all the same.
func (p *partition) forgetParts(w kv.Writer, index int64) {
	from, to := index*blockSize, (index+1)*blockSize
	w.Delete(p.key(partsKey, from), p.key(partsKey, to))
	for off := from; off < to; off++ {
		n, split := p.parts[off]
		switch _, kept := p.print.get(off); {
		case !split:
		case kept:
			put(w, p.key(partsKey, off), kv.AppendVarint(nil, int64(n)))
		default:
			delete(p.parts, off)
		}
	}
}

// load reads what save wrote. The gaps' ages start anew: while nothing ran,
// nothing could be redelivered.
func (s *positions) load(r kv.Reader, now time.Duration) error {
	err := r.Scan(nil, nil, func(key, value []byte) error {
		name, rest, err := kv.String(key)
		if err != nil || len(rest) == 0 {
			return fmt.Errorf("positions: key %q is damaged", key)
		}
		payload, err := open(value)
		if err == nil {
			err = s.partition(name).load(rest[0], rest[1:], kv.NewDecoder(payload), now)
		}
		if err != nil {
			return fmt.Errorf("positions of partition %q: %w", name, err)
		}
		return nil
	})
	for _, p := range s.parts {
		s.blocks += len(p.print.order)
	}
	return err
}

func (p *partition) load(kind byte, sub []byte, d *kv.Decoder, now time.Duration) error {
	n := int64(0)
	if kind == runKey || kind == partsKey || kind == blockKey {
		var err error
		if n, sub, err = kv.Int64(sub); err != nil {
			return err
		}
	}
	if len(sub) > 0 {
		return fmt.Errorf("key of kind %q has trailing bytes", kind)
	}
	switch kind {
	case markKey:
		p.mark, p.print.floor, p.applied = d.Varint(), d.Varint(), d.Fixed64()
	case runKey:
		p.above = append(p.above, interval{n, d.Varint()})
		p.seen[n] = now
	case partsKey:
		p.parts[n] = int32(d.Varint())
	case firstKey:
		for d.Err() == nil && d.Len() > 0 {
			off := d.Varint()
			p.print.first[off] = d.Fixed32()
		}
	case blockKey:
		b := &printBlock{index: n}
		for i := range b.hash {
			b.hash[i] = d.Fixed32()
		}
		p.print.insert(b)
	default:
		return fmt.Errorf("unknown kind of key %q", kind)
	}
	return d.Done()
}

const recordVersion = 1

// put writes a framed record.
func put(w kv.Writer, key, payload []byte) { w.Put(key, kv.AppendRecord(nil, recordVersion, payload)) }

// drop deletes one key.
func drop(w kv.Writer, key []byte) { w.Delete(key, kv.After(key)) }

// open gives the payload of a framed record of this version.
func open(data []byte) ([]byte, error) {
	version, payload, err := kv.Record(data)
	if err == nil && version != recordVersion {
		err = fmt.Errorf("record version %d, this build reads %d", version, recordVersion)
	}
	return payload, err
}
