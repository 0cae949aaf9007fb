package host

import (
	"cmp"
	"slices"
)

// partCounter numbers the messages of a batch that stand at the same offset.
type partCounter struct {
	batch   uint64
	offsets []offsetCount // of the batch, ascending
}

type offsetCount struct {
	offset int64
	count  int32
}

// next gives the number of a message among those at its offset so far. Offsets
// mostly ascend within a batch.
func (c *partCounter) next(batch uint64, off int64) int32 {
	if c.batch != batch {
		c.batch, c.offsets = batch, c.offsets[:0]
	}
	n := len(c.offsets)
	if n == 0 || c.offsets[n-1].offset < off {
		c.offsets = append(c.offsets, offsetCount{off, 1})
		return 0
	}
	i, found := slices.BinarySearchFunc(c.offsets, off, func(o offsetCount, off int64) int { return cmp.Compare(o.offset, off) })
	if !found {
		c.offsets = slices.Insert(c.offsets, i, offsetCount{offset: off})
	}
	c.offsets[i].count++
	return c.offsets[i].count - 1
}
