// Package oracle answers a windowed query by its definition. It keeps no state
// from batch to batch: every watermark is worked out from all rows up to it, and
// a window from all rows there are. It is slow and meant to be obviously right.
// It shares no code with the product.
package oracle

import (
	"cmp"
	"math/big"
	"slices"
)

// Row is one message. Times are nanoseconds since 1970.
type Row struct {
	ID        int    // names the row in Answer.Late
	Source    int    // which of the query's sources it belongs to
	Partition string // of its source
	Time      int64
	Invalid   bool // has no usable time or values: takes part in nothing
	Group     string
	Value     *big.Rat // nil: null
	Float     bool     // the value is a float, not an integer
}

// Source is a part of the input with a delay of its own.
type Source struct {
	Delay      int64
	Partitions []string // declared: W waits for each. nil: those that have spoken
}

// Query is a tumbling or sliding window over a watermark.
type Query struct {
	Sources      []Source
	Max          bool // policy: max within a source
	Size, Offset int64
	Slide        int64 // 0: Size
}

// Result is one final row: the aggregates of a group and window.
type Result struct {
	After      int // the batch after which it is due, from 1
	Start, End int64
	Group      string
	Count      int      // rows
	Values     int      // rows with a value
	Floats     bool     // one of the values is a float, so that the sum is one
	Sum        *big.Rat // of the values, as Min and Max; nil without any
	Min, Max   *big.Rat
}

// Avg is the mean of the values, nil without any.
func (r Result) Avg() *big.Rat {
	if r.Values == 0 {
		return nil
	}
	return new(big.Rat).Quo(r.Sum, big.NewRat(int64(r.Values), 1))
}

// Answer is all that comes of a query.
type Answer struct {
	Results    []Result // by After, End, Group
	Late       []int    // IDs of late rows, in the order of their arrival
	Watermarks []*int64 // after each batch, nil: unset
}

// Answer gives what the query yields when the rows arrive in these batches.
func (q Query) Answer(batches [][]Row) Answer {
	var a Answer
	for n := range batches {
		a.Watermarks = append(a.Watermarks, q.Watermark(batches[:n+1]))
	}
	type window struct {
		start int64
		group string
	}
	kept := map[window][]Row{}
	first := map[window]int{}
	for n, batch := range batches {
		var late *int64 // W before the batch
		if n > 0 {
			late = a.Watermarks[n-1]
		}
		for _, row := range batch {
			if row.Invalid {
				continue
			}
			isLate := true
			for _, start := range q.Starts(row.Time) {
				w := window{start, row.Group}
				if late != nil && w.start+q.Size <= *late {
					continue
				}
				isLate = false
				if kept[w] == nil {
					first[w] = n
				}
				kept[w] = append(kept[w], row)
			}
			if isLate {
				a.Late = append(a.Late, row.ID)
			}
		}
	}
	for w, rows := range kept {
		for n := first[w]; n < len(batches); n++ {
			if at := a.Watermarks[n]; at != nil && w.start+q.Size <= *at {
				a.Results = append(a.Results, aggregate(rows, Result{After: n + 1, Start: w.start, End: w.start + q.Size, Group: w.group}))
				break
			}
		}
	}
	slices.SortFunc(a.Results, func(x, y Result) int {
		return cmp.Or(cmp.Compare(x.After, y.After), cmp.Compare(x.End, y.End), cmp.Compare(x.Group, y.Group))
	})
	return a
}

// Starts are the starts of the windows that hold t.
func (q Query) Starts(t int64) (starts []int64) {
	slide := q.Slide
	if slide == 0 {
		slide = q.Size
	}
	rest := (t - q.Offset) % slide
	if rest < 0 {
		rest += slide
	}
	for start := t - rest; start+q.Size > t; start -= slide {
		starts = append(starts, start)
	}
	return starts
}

// Watermark is W after the given batches: the highest value that any of their
// prefixes gives, because it never goes back. nil: unset.
func (q Query) Watermark(batches [][]Row) *int64 {
	var w *int64
	for n := range batches {
		w = pick(w, q.instant(batches[:n+1]), true)
	}
	return w
}

// instant is the smallest of the sources' watermarks, or nil if one has none.
func (q Query) instant(batches [][]Row) *int64 {
	var w *int64
	for i := range q.Sources {
		own := q.source(i, batches)
		if own == nil {
			return nil
		}
		w = pick(w, own, false)
	}
	return w
}

// source is the smallest (policy max: the largest) over the partitions of source
// i of the largest event time minus the delay.
func (q Query) source(i int, batches [][]Row) *int64 {
	newest := map[string]*int64{}
	for _, batch := range batches {
		for _, row := range batch {
			if !row.Invalid && row.Source == i {
				t := row.Time
				newest[row.Partition] = pick(newest[row.Partition], &t, true)
			}
		}
	}
	for _, p := range q.Sources[i].Partitions {
		if newest[p] == nil {
			return nil
		}
	}
	var w *int64
	for _, t := range newest {
		behind := *t - q.Sources[i].Delay
		w = pick(w, &behind, q.Max)
	}
	return w
}

// pick gives the larger or the smaller of two values, of which nil is none.
func pick(a, b *int64, larger bool) *int64 {
	if a == nil || (b != nil && (*b > *a) == larger) {
		return b
	}
	return a
}

func aggregate(rows []Row, r Result) Result {
	for _, row := range rows {
		r.Count++
		if row.Value == nil {
			continue
		}
		r.Values++
		r.Floats = r.Floats || row.Float
		if r.Sum == nil {
			r.Sum, r.Min, r.Max = new(big.Rat), row.Value, row.Value
		}
		r.Sum = new(big.Rat).Add(r.Sum, row.Value)
		if row.Value.Cmp(r.Min) < 0 {
			r.Min = row.Value
		}
		if row.Value.Cmp(r.Max) > 0 {
			r.Max = row.Value
		}
	}
	return r
}
