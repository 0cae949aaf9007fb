package processors

import (
	"maps"
	"slices"
)

// Operators gives the names of the processors that are operators of a chain,
// ascending. Any goroutine may call it.
func Operators() []string { return slices.Sorted(maps.Keys(kinds)) }
