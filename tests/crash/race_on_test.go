//go:build race

package crash

// race builds the binary with the race detector, as the tests are.
const race = true
