package agg

import (
	"errors"
	"fmt"
	"strings"
)

var errText = errors.New("cannot be read")

// argument is one top-level piece of an argument list.
type argument struct {
	name string // of `name: text`, else ""
	text string // without the space and comments around it
}

// scanner walks over Bloblang as far as needed to find the commas and the
// parenthesis that belong to the aggregate. It knows quoted texts with escapes,
// texts in three quotes, comments up to the end of the line, and brackets.
type scanner struct {
	text string
	at   int
}

// arguments splits what follows the opening parenthesis and returns the rest
// behind the closing one.
func (s *scanner) arguments() (args []argument, rest string, err error) {
	for {
		a, end, err := s.argument()
		if err != nil {
			return nil, "", err
		}
		args = append(args, a)
		if end == ')' {
			break
		}
	}
	if len(args) == 1 && args[0] == (argument{}) {
		args = nil
	}
	return args, s.text[s.at:], nil
}

// argument reads up to the comma or parenthesis that ends it and returns that.
func (s *scanner) argument() (a argument, end byte, err error) {
	first, last := -1, -1 // the text from its first to behind its last character
	var open []byte
	for s.at < len(s.text) {
		c := s.text[s.at]
		if len(open) == 0 && (c == ',' || c == ')') {
			s.at++
			if first >= 0 {
				a.text = s.text[first:last]
			}
			return a, c, nil
		}
		if len(open) == 0 && c == ':' && a.name == "" && first >= 0 && isIdentifier(s.text[first:last]) {
			a.name = s.text[first:last]
			first = -1
			s.at++
			continue
		}
		start := s.at
		space, err := s.token(&open)
		if err != nil {
			return a, 0, err
		}
		if space {
			continue
		}
		if first < 0 {
			first = start
		}
		last = s.at
	}
	if len(open) > 0 {
		return a, 0, fmt.Errorf("%w: a %q is not closed%s", errText, matching(open[len(open)-1]), yamlCuts)
	}
	return a, 0, fmt.Errorf("%w: the closing parenthesis is missing%s", errText, yamlCuts)
}

// token moves behind the next space, comment, quoted text, bracket or other
// character. It keeps the closing brackets that are due in open.
func (s *scanner) token(open *[]byte) (space bool, err error) {
	c := s.text[s.at]
	switch c {
	case ' ', '\t', '\n', '\r':
		s.at++
		return true, nil
	case '#':
		n := strings.IndexByte(s.text[s.at:], '\n')
		if n < 0 {
			n = len(s.text) - s.at
		}
		s.at += n
		return true, nil
	case '"':
		return false, s.quoted()
	case '(', '[', '{':
		*open = append(*open, matching(c))
	case ')', ']', '}':
		n := len(*open)
		if n == 0 || (*open)[n-1] != c {
			return false, fmt.Errorf("%w: %q closes nothing that is open", errText, c)
		}
		*open = (*open)[:n-1]
	}
	s.at++
	return false, nil
}

// quoted moves behind a text in double or three double quotes.
func (s *scanner) quoted() error {
	const three = `"""`
	if text := s.text[s.at:]; strings.HasPrefix(text, three) {
		n := strings.Index(text[len(three):], three)
		if n < 0 {
			return fmt.Errorf("%w: a text in three quotes is not closed", errText)
		}
		s.at += n + 2*len(three)
		return nil
	}
	for i := s.at + 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '"':
			s.at = i + 1
			return nil
		}
	}
	return fmt.Errorf("%w: a quoted text is not closed", errText)
}

// matching is the other bracket of a pair.
func matching(c byte) byte {
	const pairs = "()[]{}"
	return pairs[strings.IndexByte(pairs, c)^1]
}

// isIdentifier is true for a lower case name with digits and underscores.
func isIdentifier(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// yamlCuts is what to do where the text of an aggregate has lost its end.
const yamlCuts = " (between braces YAML ends a value at a comma: put quotes around the aggregate)"
