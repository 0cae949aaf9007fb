package drive

import (
	"bytes"
	"fmt"
	"os"
)

// Snapshot copies a state file that may be in use as a crash at this moment would
// leave it. A copy that a commit ran through is recognised by a second reading
// and taken again.
func Snapshot(from, to string) error {
	before, err := os.ReadFile(from)
	for range 1000 {
		if err != nil {
			return err
		}
		var after []byte
		if after, err = os.ReadFile(from); err == nil && bytes.Equal(before, after) {
			return os.WriteFile(to, after, 0o600)
		}
		before = after
	}
	return fmt.Errorf("%s never stands still", from)
}
