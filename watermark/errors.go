package watermark

import "errors"

// Sentinels of this package; errors wrap them and say which value was refused, what is
// allowed and what to do.
var (
	// ErrMalformed: a text or number that is no event time at all.
	ErrMalformed = errors.New("malformed event time")
	// ErrRange: an event time before 1677-09-21 or after 2262-04-11.
	ErrRange = errors.New("event time out of range")
	// ErrName: an unknown unit or policy.
	ErrName = errors.New("unknown name")
	// ErrState: bytes that are not the state of a Frontier, or a Frontier that cannot
	// take them because it is in use.
	ErrState = errors.New("watermark state")
)

// shown is the longest piece of a refused value that an error repeats, in bytes.
const shown = 64

// clip shortens a refused value for an error message.
func clip[S ~string | ~[]byte](s S) string {
	if len(s) <= shown {
		return string(s)
	}
	return string(s[:shown]) + "..."
}
