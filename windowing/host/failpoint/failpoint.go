// Package failpoint names the moments at which a crash is worth a test.
//
// The host calls Hit at each of them. A build without the tag `failpoints`
// compiles every call to nothing. A build with it reads the environment
// variable of Env once, at the first hit of anything, and ends the whole
// process with SIGKILL when the named point is reached for the n-th time:
//
//	CONNECT_WINDOWED_FAILPOINT=after_commit:7
//
// kills at the seventh commit; without a number it kills at the first. A name
// that is not in Names, or a count below 1, ends the process at the first hit
// with exit code 2 and a message: a misspelt point must not look like a test
// that passed.
package failpoint

// Env is the environment variable read by builds with the tag `failpoints`.
const Env = "CONNECT_WINDOWED_FAILPOINT"

// The points, in the order in which one batch meets them.
const (
	OnStart      = "on_start"      // state is open and restored, nothing was read yet
	MidClose     = "mid_close"     // some of the windows that are due were turned into rows, others not
	BeforeCommit = "before_commit" // the write set is complete, the store has not been asked
	AfterCommit  = "after_commit"  // the store returned nil, nobody knows yet
	MidFold      = "mid_fold"      // some of the log moved into the base, the log is not cut
	BeforeAck    = "before_ack"    // the next call acknowledges messages to their source
	AfterAck     = "after_ack"     // the source has acknowledged
	AfterDeliver = "after_deliver" // rows went downstream, their acknowledgement is not recorded
)

// Environment variables that make rare moments frequent, read by builds with the
// tag `failpoints`. Each holds a whole number from 1.
const (
	EnvGeneration = "CONNECT_WINDOWED_GENERATION_BYTES" // see Generation
	EnvPart       = "CONNECT_WINDOWED_PART_ROWS"        // see Part
)

// Names returns every point.
func Names() []string {
	return []string{OnStart, MidClose, BeforeCommit, AfterCommit, MidFold, BeforeAck, AfterAck, AfterDeliver}
}
