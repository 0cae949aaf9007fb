package watermark

import (
	"fmt"
	"slices"
)

// AppendState appends the whole state: W and the largest event time of every partition
// that has spoken in an ended batch. Idle clocks, waits and the current batch are not
// state. It takes time in proportion to the partitions; see WriteChanges for many. The
// bytes have a version but no checksum, which is the store's.
func (f *Frontier) AppendState(b []byte) []byte {
	var e encoder
	e.b = append(b, stateVersion)
	e.time(f.w)
	e.count(f.spokenSources())
	for i := range f.sources {
		s := &f.sources[i]
		if len(s.list) == 0 {
			continue
		}
		e.text(s.config.Name)
		e.count(len(s.list))
		for _, p := range s.list {
			e.text(p.name)
			e.time(p.time)
		}
	}
	return e.b
}

// Restore takes the state that AppendState wrote into a Frontier that has seen nothing
// yet, and starts its clocks at start. Restored partitions are active, their idle clocks
// and a startup grace begin there. W does not go back by a larger delay. Partitions of
// sources that are not configured any more are forgotten.
//
// Errors wrap ErrState and leave the Frontier as it was.
func (f *Frontier) Restore(b []byte, start Clock) error {
	if err := f.fresh(); err != nil {
		return err
	}
	st, err := decodeState(b)
	if err != nil {
		return err
	}
	f.clock = startClock(start)
	f.w = st.w
	for _, src := range st.sources {
		for _, p := range src.partitions {
			if restored := f.restorePartition(src.name, p.name, p.time); restored != nil {
				f.changed.add(restored)
			}
		}
	}
	f.changed.w = f.w != Unset
	return nil
}

// fresh refuses to restore over what has been observed or restored.
func (f *Frontier) fresh() error {
	if f.w != Unset || f.spokenSources() > 0 || len(f.batch) > 0 {
		return fmt.Errorf("%w: this Frontier is in use: restore into a new one", ErrState)
	}
	return nil
}

func (f *Frontier) spokenSources() (n int) {
	for i := range f.sources {
		if len(f.sources[i].list) > 0 {
			n++
		}
	}
	return n
}

// restorePartition makes a partition as if it had spoken at the start; nil when its
// source is not configured any more.
func (f *Frontier) restorePartition(sourceName, name string, t Time) *partition {
	index := slices.IndexFunc(f.sources, func(s source) bool { return s.config.Name == sourceName })
	if index < 0 {
		return nil
	}
	s := &f.sources[index]
	p := s.byName[name]
	if p == nil {
		p = s.add(index, name)
	}
	p.next = t
	s.spoke(p, f.clock.mono)
	return p
}

// The records of WriteChanges. A key is a kind and what it is about.
const (
	keyWatermark = 'w' // value: W
	keyPartition = 'p' // source as a text, the partition's bare bytes; value: its time
)

// changes collects what WriteChanges has to write.
type changes struct {
	w          bool
	partitions []*partition
}

func (c *changes) add(p *partition) {
	if !p.dirty {
		p.dirty = true
		c.partitions = append(c.partitions, p)
	}
}

// WriteChanges calls put with the records that changed since it was last called, one for
// W and one per partition, in no order: the same state as AppendState for a store that
// keeps records, at a cost in proportion to what has spoken. put may keep the slices.
// What was put counts as written: a failed commit is to be repeated with the same
// records.
func (f *Frontier) WriteChanges(put func(key, value []byte)) {
	if f.changed.w {
		f.changed.w = false
		put([]byte{keyWatermark}, recordValue(f.w))
	}
	for i, p := range f.changed.partitions {
		p.dirty = false
		f.changed.partitions[i] = nil
		e := encoder{b: []byte{keyPartition}}
		e.text(f.sources[p.source].config.Name)
		put(append(e.b, p.name...), recordValue(p.time))
	}
	f.changed.partitions = f.changed.partitions[:0]
}

// RestoreRecord takes one record of WriteChanges, in any order, into a Frontier that has
// seen no row yet; what Restore says holds, with the clock given to NewFrontier. Errors
// wrap ErrState.
func (f *Frontier) RestoreRecord(key, value []byte) error {
	v := decoder{b: value}
	v.version()
	t := v.time(Unset)
	if err := v.done(); err != nil {
		return fmt.Errorf("value of record %q: %w", clip(key), err)
	}
	k := decoder{b: key}
	switch kind := k.byte(); {
	case k.err == nil && kind == keyWatermark && len(k.b) == 0:
		f.w = max(f.w, t)
		return nil
	case k.err == nil && kind == keyPartition && t != Unset:
		source := k.text()
		if k.err == nil {
			f.restorePartition(source, string(k.b), t)
			return nil
		}
	}
	return fmt.Errorf("%w: the record %q at %s is neither W nor a partition", ErrState, clip(key), t)
}

func recordValue(t Time) []byte {
	e := encoder{b: make([]byte, 0, 9)}
	e.b = append(e.b, stateVersion)
	e.time(t)
	return e.b
}
