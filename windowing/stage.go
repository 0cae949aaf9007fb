package windowing

import (
	"time"

	"github.com/connect-windowed/connect-windowed/watermark"
)

// Stage is one element of a chain: exactly one of Watermark, Relay, Operator and
// Foreign is set.
type Stage struct {
	Name string // identity of the state, unique in a chain; "" for foreign stages
	Kind string // the operator's kind, e.g. tumbling_window

	Watermark *Watermark
	Operator  Operator
	Foreign   bool // messages are processed by the caller, see Chain.Run
	Relay     bool // the pair of a watermark elsewhere is told by Chain.BeginRelayed

	Binding    Binding       // evaluates and renders; nil for foreign stages
	Hold       time.Duration // >= 0: how far rows emitted here may lie behind the pair, see Chain
	Revises    bool          // may emit a row key twice: no stateful operator may follow
	Definition []Setting     // what makes the stored state meaningful
}

// Watermark is the part of a watermark stage that is not evaluated.
type Watermark struct {
	Config   watermark.Config
	MaxAhead time.Duration // 0: off; a row further beyond the wall clock is invalid
}

// Setting is one setting of a definition. State written under another value
// means something else and is refused.
type Setting struct{ Field, Value string }

// Pair is what a watermark tells the operators behind it: Late is W before the
// step, Close is W after it.
type Pair struct{ Late, Close watermark.Time }

// Binding is the seam between a stage and the messages that it works on.
type Binding interface {
	// Extract fills what the stage needs of every Data row (for a watermark
	// Time, Source and Partition, else Key and Args), or turns the row Invalid
	// with its Err, its message then carrying the error. It changes no state and
	// may be called from several goroutines, ahead of the step.
	Extract(rows []Row)
	// Render makes the message of a result, and may set its Err.
	Render(res *Result) Message
	// Fail gives the message that carries the error. It is called by the owner.
	Fail(m Message, err error) Message
}
