package windowing

import (
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// Message is what a row carries through a chain. Operators never look inside:
// only the binding that made it knows its type.
type Message any

// Flag says how a row takes part in a chain.
type Flag uint8

// The states of a row.
const (
	// Data rows take part in every stage.
	Data Flag = iota
	// Invalid rows have no usable event time, failed in a stage or arrived with
	// an error. They pass untouched through every later stage.
	Invalid
	// Late rows were judged late by an operator that passes them on. They pass
	// untouched through every later stage.
	Late
	// Duplicate rows were seen before by an operator that passes them on. They
	// pass untouched through every later stage.
	Duplicate
)

// Row is one row on its way through a chain. The binding of a stage fills what
// that stage's operator needs; nothing in it is shared with another row except
// through Message.
type Row struct {
	Time      watermark.Time // event time, valid for Data rows behind a watermark
	Arrival   int64          // number of the row in the chain, grows strictly, survives restarts
	Source    int32          // index of the watermark's source, negative: of none
	Entry     int32          // index of the offered message that the row derives from
	Flag      Flag
	counted   bool        // an Invalid row is in a tally
	failed    bool        // in the stage that runs: the message has to carry Err
	Fails     int16       // with Err on a Data row: the leading stage at which it turns Invalid
	Partition string      // partition within the source, "" where there is one for all
	Key       []byte      // canonical group or key (agg.Value.AppendKey), for the stage about to run
	Args      []agg.Value // the operator's arguments in the order of its definition
	Err       error       // why the row is Invalid, or will be
	Message   Message
	Mark      *Mark // set on rows that an operator emitted or judged late
}

// Timing says when a row came out relative to its window's end.
type Timing uint8

// The timings of an emitted row. NoTiming stands on late rows and on rows that
// merely passed.
const (
	NoTiming Timing = iota
	Early
	OnTime
	AfterEnd // "late": a revision after the on-time row
	Deleted
)

var timingNames = [...]string{NoTiming: "", Early: "early", OnTime: "on_time", AfterEnd: "late", Deleted: "delete"}

// String gives the text used in metadata.
func (t Timing) String() string { return timingNames[t] }

// Mark is what the exit of a chain writes into the metadata of an emitted or a
// late row. It travels beside the message, so that no stage in between can lose
// or forge it.
type Mark struct {
	Operator  string
	Timing    Timing
	RowKey    string         // identity of the row, see RowKey; "" on late rows
	Revision  int64          // from 1, grows strictly for one RowKey
	Spanned   bool           // Start and End are set
	Start     watermark.Time // inclusive
	End       watermark.Time // exclusive
	EventTime watermark.Time
	Watermark watermark.Time // W after the step in the operator's domain, before holds
	LateBy    time.Duration  // late rows: how far the event time lies behind the watermark
}
