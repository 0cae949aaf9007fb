// Package agg holds the values that expressions give and the functions that
// aggregate them: one file per function and one line in the table of
// Functions, which drives parsing, documentation, lint and tests.
//
// It is pure: no clock, no goroutine, no lock, no evaluation of expressions.
// Nothing here is safe for concurrent use, except what a Function and a Call
// offer, which are never changed once they exist.
package agg
