package sql

import (
	"errors"

	"github.com/connect-windowed/connect-windowed/processors/internal/lint"
)

// errLinted marks a mistake that the lint of a field finds by itself.
var errLinted = errors.New("the mapping does not parse")

// rules are the lint rules of the outputs.
var rules = lint.NewRules("sql_output_lint", "the sql outputs", func(err error, _ any) bool { return errors.Is(err, errLinted) })
