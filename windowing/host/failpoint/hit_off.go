//go:build !failpoints

package failpoint

// Enabled says whether this build can kill itself.
const Enabled = false

// Hit does nothing in this build.
func Hit(string) {}

// Generation is 0 in this build: the state's log has its own size.
func Generation() int { return 0 }

// Part is 0 in this build: parts of a close have their own size.
func Part() int { return 0 }
