//go:build !race

package tests

// race: the tests do not run under the race detector.
const race = false
