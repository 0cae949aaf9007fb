package kafka

import "github.com/twmb/franz-go/pkg/kgo"

// flight keeps track of what a partition has handed out and how far it is
// acknowledged. Parcels are added in the order of their offsets and acknowledged
// in any order; the position is the first offset that is not acknowledged. It is
// not safe for concurrent use.
type flight struct {
	parcels  []*parcel // in the order of their offsets; acknowledged ones only behind others
	bytes    int       // of those that are not acknowledged
	waiting  int       // number of those
	position kgo.EpochOffset
	moved    bool // the position stands on an acknowledgement
}

// parcel is a batch of records of one partition, handed out at once.
type parcel struct {
	lane     *lane
	records  []*kgo.Record // that are not acknowledged, nil where they were handed over
	bytes    int
	end      int64           // of the partition, when this was handed out
	first    int64           // offset of those it was handed out with
	last     kgo.EpochOffset // behind the last record it was handed out with
	highest  kgo.EpochOffset // the first record that is not acknowledged, where one before it is
	done     bool
	attempts int // how often it was refused
}

// add appends a parcel, whose offsets are above those of the ones before.
func (f *flight) add(p *parcel) {
	f.parcels = append(f.parcels, p)
	f.bytes += p.bytes
	f.waiting++
}

// acknowledge takes the records of a parcel as acknowledged, all but those at the
// indexes in failed, which ascend. It reports whether the position moved.
func (f *flight) acknowledge(p *parcel, failed []int) bool {
	if p.done {
		return false
	}
	left := make([]*kgo.Record, len(failed))
	for i, at := range failed {
		left[i] = p.records[at]
	}
	if len(left) > 0 && left[0] != p.records[0] {
		p.highest = kgo.EpochOffset{Epoch: left[0].LeaderEpoch, Offset: left[0].Offset}
	}
	p.records = left
	if p.done = len(left) == 0; p.done {
		p.highest = p.last
		f.bytes -= p.bytes
		f.waiting--
	}
	return f.advance()
}

// advance moves the position over the parcels in front that are acknowledged, and
// into the first that is not.
func (f *flight) advance() bool {
	before := f.position
	n := 0
	for n < len(f.parcels) && f.parcels[n].done {
		f.position, f.moved = f.parcels[n].highest, true
		n++
	}
	clear(f.parcels[:n])
	f.parcels = f.parcels[n:]
	if len(f.parcels) > 0 && f.parcels[0].highest.Offset > 0 {
		f.position, f.moved = f.parcels[0].highest, true
	}
	return f.position != before
}

// behind is the position after a record.
func behind(r *kgo.Record) kgo.EpochOffset {
	return kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
}
