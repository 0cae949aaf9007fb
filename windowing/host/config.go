package host

import (
	"context"
	"time"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// Edge is where messages leave the host: it finishes them, and turns them into
// bytes for the outbox and back. It is called by the owner only.
type Edge interface {
	// Exit gives the message that leaves for a row at the exit of the chain, with
	// the metadata of its Mark and its error on it.
	Exit(row *windowing.Row) windowing.Message
	// Body gives the payload, by which two versions of a row are compared.
	Body(m windowing.Message) []byte
	// Append appends the whole message to b, to be read by Decode in a later run.
	Append(b []byte, m windowing.Message) []byte
	Decode(data []byte) (windowing.Message, error)
}

// Logger is where the host says what an operator of the pipeline has to know.
type Logger interface {
	Infof(format string, args ...any)
	Warnf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Meter receives what is measured. It is called by the owner only.
type Meter interface {
	Count(name string, n int64, label string)
	Gauge(name string, value int64, label string)
	Took(name string, d time.Duration)
}

// The metrics of a host. Labelled ones carry the operator's name.
const (
	RowsIn        = "windowed_rows_in"          // counter: messages applied
	LateRows      = "windowed_late_rows"        // counter by operator
	InvalidRows   = "windowed_invalid_rows"     // counter by operator
	DuplicateRows = "windowed_duplicate_rows"   // counter by operator
	RowsEmitted   = "windowed_rows_emitted"     // counter by operator: rows made by it
	Watermark     = "windowed_watermark_ms"     // gauge by watermark: milliseconds since 1970, absent while unset
	WatermarkLag  = "windowed_watermark_lag_ms" // gauge by watermark: wall clock - W
	OpenWindows   = "windowed_open_windows"     // gauge by operator
	Groups        = "windowed_groups"           // gauge by operator: groups in state
	StateBytes    = "windowed_state_bytes"      // gauge: size of the state file
	Commits       = "windowed_commits"          // counter
	CommitTime    = "windowed_commit_ns"        // timing: duration of a commit
	CommitErrors  = "windowed_commit_errors"    // counter: failed tries
	OutboxRows    = "windowed_outbox_rows"      // gauge: rows not delivered yet
	Redelivered   = "windowed_redelivered_rows" // counter: positions that were applied before and skipped
	Faults        = "windowed_faults"           // counter
	Nacked        = "windowed_nacked_rows"      // counter: rows that the output refused
)

// Limits bound what a host holds in memory. Zero values mean the default.
type Limits struct {
	MailboxRows  int64 // rows offered and not applied yet, default 16384
	MailboxBytes int64 // bytes of the same, default 32 MiB
	CommitRows   int   // rows applied before a commit starts although more wait, default 262144
	CommitBytes  int64 // bytes of them that stay in memory, half of what is applied while a commit is under way; default 64 MiB
	PendingRows  int   // rows applied while a commit is under way, default 524288
	UnreadRows   int   // rows emitted that nobody read yet, default 16384
	BatchRows    int   // rows handed over at once, default 1000
	LogBytes     int64 // processor form: rows kept for redelivery, default 64 MiB
}

// Config is what a host is made of.
type Config struct {
	Name  string // of the host, for messages
	Chain *windowing.Chain
	Store kv.Store // nil: state in memory
	Edge  Edge
	// Foreign runs the processor at a foreign stage over rows, off the owner.
	Foreign func(ctx context.Context, stage int, rows []windowing.Row) ([]windowing.Row, error)

	// Leaving is called with the rows at the exit of the chain before they leave,
	// with the pair for whoever comes next; nil: nobody does.
	Leaving func(rows []windowing.Row, p windowing.Pair, w watermark.Time)
	// Again is called with a row that leaves again, out of the log for redeliveries, and
	// with what was told about the batch that it leaves with. Nil: nobody behind the host
	// saves for itself, see doubt.
	Again func(m windowing.Message, told *Relayed)

	Positions    PositionMode
	PositionText string        // the position setting as the user wrote it: part of the state's meaning
	Horizon      time.Duration // position_horizon
	Reply        bool          // rows go back to the caller of Apply, there is no outbox
	Flush        bool          // on_end: flush
	LagTTL       time.Duration // how long a message that reported a lag counts as backlog

	Clock     Clock
	Log       Logger
	Meter     Meter
	Limits    Limits
	StateSize func() (int64, error) // of the file, nil: unknown
	OnFault   func(error)           // called once, by the owner, when reading stops for good
}

func (c *Config) defaults() {
	set(&c.Limits.MailboxRows, 16384)
	set(&c.Limits.MailboxBytes, 32<<20)
	set(&c.Limits.CommitRows, 262144)
	set(&c.Limits.CommitBytes, 64<<20)
	set(&c.Limits.PendingRows, 524288)
	set(&c.Limits.UnreadRows, 16384)
	set(&c.Limits.BatchRows, 1000)
	set(&c.Limits.LogBytes, 64<<20)
	set(&c.Horizon, 10*time.Minute)
	if c.Clock == nil {
		c.Clock = SystemClock()
	}
}

func set[T int | int64 | time.Duration](v *T, fallback T) {
	if *v <= 0 {
		*v = fallback
	}
}
