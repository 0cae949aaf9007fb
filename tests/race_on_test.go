//go:build race

package tests

// race: the tests run under the race detector, which looks at how goroutines meet
// and not at answers, so that fewer variants do.
const race = true
