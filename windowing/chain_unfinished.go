package windowing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
)

// unfinished is what a watermark behind the front has observed of the parts of a
// step so far: the largest event time of each partition. It becomes a batch with
// the last part. A frontier saves ended batches only, so that this is saved with
// the step.
type unfinished map[speaker]watermark.Time

// speaker is a partition of a source.
type speaker struct {
	source    int32
	partition string
}

// add takes a row in.
func (u unfinished) add(row *Row) {
	s := speaker{row.Source, row.Partition}
	t, known := u[s]
	switch {
	case !known: // the text may alias a buffer
		s.partition = strings.Clone(s.partition)
	case t >= row.Time:
		return
	}
	u[s] = row.Time
}

// appendUnfinished encodes what the watermarks have observed of an open step.
func (c *Chain) appendUnfinished(b []byte) []byte {
	for stage, u := range c.unfinished {
		for s, t := range u {
			b = kv.AppendUvarint(b, uint64(stage))
			b = kv.AppendBlob(b, c.stages[stage].Watermark.Config.Sources[s.source].Name)
			b = kv.AppendBlob(b, s.partition)
			b = kv.AppendVarint(b, int64(t))
		}
	}
	return b
}

// observed is a record of appendUnfinished.
type observed struct {
	stage     int
	source    string
	partition string
	time      watermark.Time
}

func readObserved(d *kv.Decoder) observed {
	return observed{int(d.Uvarint()), d.String(), d.String(), watermark.Time(d.Varint())}
}

// observeAgain takes a record into the frontiers, which are restored already. A
// source that is not configured any more is forgotten.
func (c *Chain) observeAgain(o observed) error {
	if o.stage < 0 || o.stage >= len(c.stages) || c.frontier[o.stage] == nil {
		return fmt.Errorf("record %q: stage %d is no watermark: %w", stepKey, o.stage, kv.ErrCorrupt)
	}
	sources := c.stages[o.stage].Watermark.Config.Sources
	source := slices.IndexFunc(sources, func(s watermark.SourceConfig) bool { return s.Name == o.source })
	if source < 0 {
		return nil
	}
	c.frontier[o.stage].Observe(source, o.partition, o.time)
	c.later(o.stage).add(&Row{Source: int32(source), Partition: o.partition, Time: o.time})
	return nil
}

// later gives what the watermark at a stage has observed of the step so far.
func (c *Chain) later(stage int) unfinished {
	if c.unfinished == nil {
		c.unfinished = make([]unfinished, len(c.stages))
	}
	if c.unfinished[stage] == nil {
		c.unfinished[stage] = unfinished{}
	}
	return c.unfinished[stage]
}

// ended makes a batch of what a stage has observed, and says whether there was
// anything.
func (c *Chain) ended(stage int) (any bool) {
	if c.unfinished != nil {
		any = len(c.unfinished[stage]) > 0
		clear(c.unfinished[stage])
	}
	return any
}
