package sql

import (
	"fmt"
	"strings"
)

// remedies say what to do, by the beginning of an error's code: the longest
// counts.
type remedies map[string]string

func (r remedies) of(code string) string {
	for n := len(code); n > 0; n-- {
		if text, ok := r[code[:n]]; ok {
			return text
		}
	}
	return ""
}

// explained is an error with the fields, the value and the remedy. value is "" or
// begins with a separator.
func explained(err error, what []string, remedy string) error {
	var parts []string
	for _, part := range what {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, ": ")
	switch {
	case text == "" && remedy == "":
		return err
	case remedy == "":
		return fmt.Errorf("%s: %w", text, err)
	case text == "":
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return fmt.Errorf("%s: %w: %s", text, err, remedy)
}

// needsKey is the remedy for an upsert without the key that it needs.
func (c *call) needsKey() string {
	remedy := "an upsert needs a PRIMARY KEY or a unique index over just the columns of ON CONFLICT"
	if c.stmt.index != "" {
		remedy += ": " + c.stmt.index
	}
	return remedy
}

// argument names an argument of a statement and shows its value.
func (c *call) argument(i int) string {
	if i < 0 || i >= len(c.args) {
		return ""
	}
	if i < len(c.stmt.columns) {
		return fmt.Sprintf("column %s, value %s", c.stmt.columns[i], shown(c.args[i]))
	}
	return fmt.Sprintf("value %d, %s", i+1, shown(c.args[i]))
}

// column is the number of the argument for a column, or -1.
func (c *call) column(name string) int {
	for i, column := range c.stmt.columns {
		if strings.EqualFold(strings.Trim(column, "\"`[]"), name) {
			return i
		}
	}
	return -1
}

// What stands in a query that is not filled in, and what to do about it.
const (
	interpolation = "${!"
	notDynamic    = "${! } is not filled in here: give the values with args_mapping and placeholders, or set unsafe_dynamic_query: true"
)
