package agg

import (
	"errors"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// Sentinels of Check and Result.
var (
	// ErrArgument: a value that the aggregate cannot take. The message that
	// holds it is invalid and enters no aggregate.
	ErrArgument = errors.New("bad argument")
	// ErrOverflow: the result is a number out of range. The field is null.
	ErrOverflow = errors.New("overflow")
	// ErrLimit: the aggregate has seen more than its limit. The field is null.
	ErrLimit = errors.New("limit exceeded")
)

// Input is what one row gives to one aggregate.
type Input struct {
	Value   Value          // the first argument; ignored by count()
	By      Value          // the second argument, for the functions that have one
	Time    watermark.Time // event time of the row
	Arrival int64          // grows with each row of the operator; decides at equal times
}

// Accumulator is the state of one aggregate of one group and window. One owner
// calls it; it keeps no reference to the texts of an Input.
type Accumulator interface {
	// Add takes one row. It cannot fail: Function.Check accepted the input.
	Add(in Input)
	// Merge takes over what the other has seen, which stays as it is. The other
	// comes from the same Call and has seen other rows.
	Merge(other Accumulator)
	// Result may be called at any time and any number of times. On an error
	// (ErrOverflow, ErrLimit) the value is null and the row carries the error.
	Result() (Value, error)
	// Append appends the state, which Function.Decode reads.
	Append(b []byte) []byte
}

// Growing is an Accumulator whose state grows with its input. Its owner may
// write, at each commit, only what is new, and put the parts together by
// decoding each and merging all into the first.
type Growing interface {
	Accumulator
	// AppendNew appends, as a state of its own, what was added since the last
	// Saved; all of it where there was none.
	AppendNew(b []byte) []byte
	// Saved says that what AppendNew gave is durable, or that the accumulator
	// has just been put together from durable parts.
	Saved()
}

// Function is one aggregate function: how it is called, checked, computed,
// stored and documented. Functions are never changed once the table exists.
type Function struct {
	Name    string
	Summary string   // for the documentation: what it gives, what it ignores, its error
	Args    []string // names of the value expressions, in order
	MinArgs int      // how many of Args must be there; at most len(Args) are
	Options []Option // constants and further expressions, beside where
	// Check tells whether the accumulator can take the input: nil, or an
	// ErrArgument that names the call, the value and what is allowed.
	Check func(c *Call, in Input) error
	// New is an empty accumulator.
	New func(c *Call) Accumulator
	// NewColumn is an empty column.
	NewColumn func(c *Call) Column
	// Decode reads a state and returns the bytes behind it, or ErrState. It
	// keeps no reference to b.
	Decode   func(c *Call, b []byte) (acc Accumulator, rest []byte, err error)
	Examples []Example

	also    []string            // names in other engines, for the suggestion in an error
	prepare func(c *Call) error // computes from the options what all accumulators of a call share
}

// Example is one call with its answer, for the documentation and the tests.
type Example struct {
	Call   string // as a user writes it
	Values string // JSON list of the values in the order of event time; of lists where there are two arguments
	Result string // JSON
}

// Usage is the call with all its arguments, e.g. "quantile(value, q)".
func (f *Function) Usage() string {
	text := f.Name + "("
	sep := ""
	for i, name := range f.Args {
		if i >= f.MinArgs {
			text += "[" + sep + name + "]"
		} else {
			text += sep + name
		}
		sep = ", "
	}
	for _, o := range f.Options {
		if o.Default.IsNull() && !o.Optional {
			text += sep + o.usage()
			sep = ", "
		}
	}
	return text + ")"
}

// state is an accumulator that reads back what it appended.
type state interface {
	Accumulator
	decode(d *reader)
}

// position orders rows: by event time, then arrival.
type position struct {
	time    watermark.Time
	arrival int64
}

func (in *Input) position() position { return position{in.Time, in.Arrival} }

func (p position) before(q position) bool {
	return p.time < q.time || p.time == q.time && p.arrival < q.arrival
}
