package statecache

import (
	"errors"
	"fmt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// Errors of opening a file and of taking a name in it.
var (
	// ErrInUse: another process, or another open of this one, holds the file.
	ErrInUse = errors.New("the state file is in use")
	// ErrForeign: the file was not written by this program.
	ErrForeign = errors.New("not a state file of connect-windowed")
	// ErrNewer: the file was written by a newer version of this program.
	ErrNewer = errors.New("the state file was written by a newer version")
	// ErrLeased: the name in the file is taken in this process.
	ErrLeased = errors.New("the state is in use")
	// ErrName: a name that cannot be used.
	ErrName = errors.New("invalid name of state")
)

// Errors of reading and writing.
var (
	// ErrDamaged: bytes of the file are not what was written. A *DamageError
	// says where.
	ErrDamaged = errors.New("the state file is damaged")
	// ErrBusy: two goroutines committed to a Space at once, against its rules;
	// the second one did nothing.
	ErrBusy = errors.New("overlapping use of a state space")
	// ErrClosed is kv.ErrClosed: the File, Space or Cache was closed before.
	ErrClosed = kv.ErrClosed
)

// Errors of a Cache.
var (
	// ErrNotFound: no entry of that key, or it has expired.
	ErrNotFound = errors.New("no such key in the cache")
	// ErrExists: Add found an entry of that key that has not expired.
	ErrExists = errors.New("the key is in the cache already")
)

// DamageError says what in a file cannot be read. errors.Is finds ErrDamaged
// and whatever Cause wraps.
type DamageError struct {
	Path  string // the file
	Where string // what was being read or done
	Cause error
}

// Error names the file, the place and the remedies.
func (e *DamageError) Error() string {
	return fmt.Sprintf("the state file %q is damaged (%s: %v). It is left as it is. Put a copy from a backup in its place; or move it away to start with empty state (results then start anew, and what the source does not send again is lost); `bbolt check` shows what is readable", e.Path, e.Where, e.Cause)
}

// Unwrap makes errors.Is find ErrDamaged and the cause.
func (e *DamageError) Unwrap() []error { return []error{ErrDamaged, e.Cause} }
