package kafka

import (
	"errors"
	"slices"

	"github.com/connect-windowed/connect-windowed/processors/internal/lint"
)

// rules are the lint rules of the input and the output. A value may be blank that is
// that of a variable which lint was told not to ask for; the rule of a field finds a
// word that is not supported.
var rules = lint.NewRules("redpanda_lint", "redpanda components", func(err error, raw any) bool {
	return errors.Is(err, errNoChoice) || errors.Is(err, errNothing) && blank(raw)
})

// blank reports that a field is there which must not be empty, but is.
func blank(v any) bool {
	fields, _ := v.(map[string]any)
	for _, name := range []string{fieldBrokers, fieldTopics, fieldGroup, fieldTopic} {
		switch v := fields[name].(type) {
		case string:
			if v == "" {
				return true
			}
		case []any:
			if slices.Contains(v, any("")) {
				return true
			}
		}
	}
	return false
}

// errNothing marks a mistake that a value brings about which is empty.
var errNothing = errors.New("is missing")

func must(err error) {
	if err != nil {
		panic(err)
	}
}
