package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// choiceField is a field that takes one of a few words.
func choiceField(name string, words ...string) *service.ConfigField {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return service.NewStringEnumField(name, words...).LintRule(fmt.Sprintf(
		`root = if ![%s].contains(this) { ["%s: %%v is not supported: use %s".format(this)] }`,
		strings.Join(quoted, ", "), name, strings.Join(words, ", ")))
}

// parseChoice reads such a field. A start may leave lint out.
func parseChoice(conf *service.ParsedConfig, name string, words ...string) (string, error) {
	word, err := conf.FieldString(name)
	if err != nil {
		return "", err
	}
	return word, checkChoice(name, word, words)
}

// errNoChoice refuses a word. The rule of the field finds it too.
var errNoChoice = errors.New("is not supported")

func checkChoice(name, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf("%s: %q %w: use %s", name, word, errNoChoice, strings.Join(words, ", "))
}
