//go:build !race

package crash

// race builds the binary without the race detector.
const race = false
