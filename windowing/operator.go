package windowing

import (
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// Instant is the time at which an operator is called. Late and Close are the
// pair of Spark's chained stateful operators: rows are judged late with W as it
// was before the step, and state is closed with W as it is after it.
type Instant struct {
	Late  watermark.Time
	Close watermark.Time
	Wall  watermark.Time // wall clock, for processing-time timers
}

// Operator is a stateful operator without clocks, disks and messages. One
// goroutine owns it.
//
// A step is one Process with all rows of a batch (absent when there are none),
// then Advance until it says that it is done. Rows with a Flag other than Data
// are passed on with Output.Pass, in their place. Nothing of rows may be kept
// beyond the call except Message and immutable strings: Key and Args are copied.
type Operator interface {
	// Process applies a batch. It judges lateness with in.Late and must not use
	// in.Close, which equals in.Late while an operator upstream is still closing.
	Process(in Instant, rows []Row, out *Output)
	// Advance closes what is due at in.Close in the order (end, start, group),
	// after about limit results at the latest, and says whether nothing due is
	// left. It is called again with the same Instant until then.
	Advance(in Instant, limit int, out *Output) (done bool)
	// Save writes what changed since the last Save. The write set is kept by
	// the caller until it is on disk, so that Save forgets what it wrote.
	Save(w kv.Writer)
	// Load reads what Save wrote into a fresh operator. Keys are those of Save.
	Load(r kv.Reader) error
}

// Result is a row that an operator makes.
type Result struct {
	Time     watermark.Time // event time for the next operator
	Timing   Timing
	Revision int64
	RowKey   string
	Spanned  bool
	Start    watermark.Time
	End      watermark.Time
	Key      []byte      // canonical group, decoded by agg.DecodeKey once for each grouping expression
	Values   []agg.Value // one for each aggregate; of a join what its Codec kept of the left and of the right message, null for a missing one
	Err      error       // goes onto the row, e.g. agg.ErrOverflow of one field
	Message  Message     // the message that passes, for operators that pass messages on
	Source   int32       // of Message where it is that of a row, counted from 1; 0: none
}

// Output collects what a stage hands to the next one. Its zero value is ready.
type Output struct {
	items []item
	tally Tally
	err   error

	rows    room[Row]
	results room[Result]
	values  room[agg.Value]
}

// item is either a row that passes or a result to be rendered.
type item struct {
	row    *Row
	result *Result
}

// Tally counts what became of rows.
type Tally struct {
	Late      int64 // judged late, dropped or passed on
	Invalid   int64 // failed in this stage
	Duplicate int64 // found to be duplicates, dropped or passed on
	Emitted   int64 // results

	LateBy time.Duration // of the first late row: how far it lies behind the watermark
	Cause  error         // of the first invalid row
	Broken error         // of the first result that has one
}

// late counts a late row.
func (t *Tally) late(by time.Duration) {
	if t.Late++; t.Late == 1 {
		t.LateBy = by
	}
}

// invalid counts an invalid row.
func (t *Tally) invalid(cause error) {
	if t.Invalid++; t.Cause == nil {
		t.Cause = cause
	}
}

// add counts what another tally has counted since.
func (t *Tally) add(o *Tally) {
	if t.Late == 0 {
		t.LateBy = o.LateBy
	}
	if t.Cause == nil {
		t.Cause = o.Cause
	}
	if t.Broken == nil {
		t.Broken = o.Broken
	}
	t.Late += o.Late
	t.Invalid += o.Invalid
	t.Duplicate += o.Duplicate
	t.Emitted += o.Emitted
}

// Pass hands a row on unchanged.
func (o *Output) Pass(row Row) {
	room := o.rows.take(1)
	room[0] = row
	o.items = append(o.items, item{row: &room[0]})
}

// Emit hands on a result. The output keeps it until Reset.
func (o *Output) Emit(res *Result) {
	o.tally.Emitted++
	o.items = append(o.items, item{result: res})
}

// Late counts a late row, by is how far its event time lies behind the
// watermark, and hands it on where pass says so.
func (o *Output) Late(row Row, operator string, by time.Duration, pass bool) {
	o.tally.late(by)
	if !pass {
		return
	}
	row.Flag = Late
	row.Mark = &Mark{Operator: operator, EventTime: row.Time, LateBy: by}
	o.Pass(row)
}

// Fail hands a row on as invalid.
func (o *Output) Fail(row Row, err error) {
	o.tally.invalid(err)
	row.Flag, row.Err, row.counted, row.failed = Invalid, err, true, true
	o.Pass(row)
}

// Deliver hands a row on as a result of the operator: its message goes as it is,
// with the identity of mark, and stays with the message that came in.
func (o *Output) Deliver(row Row, mark *Mark) {
	o.tally.Emitted++
	row.Mark = mark
	o.Pass(row)
}

// Duplicate counts a row that the operator has seen before, and hands it on where
// pass says so.
func (o *Output) Duplicate(row Row, operator string, pass bool) {
	o.tally.Duplicate++
	if !pass {
		return
	}
	row.Flag = Duplicate
	row.Mark = &Mark{Operator: operator, EventTime: row.Time}
	o.Pass(row)
}

// Break says that the operator could not read its state back, and returns at once.
// The step cannot be completed, and nothing of the operator may be saved any more.
func (o *Output) Break(err error) { o.err = err }

// Reset empties the output for the next stage, and takes the memory of its rows and
// results back.
func (o *Output) Reset() {
	clear(o.items)
	o.items, o.tally, o.err = o.items[:0], Tally{}, nil
	o.rows.reset()
	o.results.reset()
	o.values.reset()
}
