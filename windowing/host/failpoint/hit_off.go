//go:build !failpoints

package failpoint

// Enabled says whether this build can kill itself.
const Enabled = false

// Hit does nothing in this build.
func Hit(string) {}
