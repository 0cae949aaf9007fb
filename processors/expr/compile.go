package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
)

// compile finds the cheapest source for a text. Bloblang compiles it in any
// case: its parser decides what is valid, and its executor stands behind the
// shortcuts.
func (s *Set) compile(text string) (source, error) {
	m, err := parseMapping(text)
	if err != nil {
		return nil, err
	}
	m.index = s.execs
	s.execs++
	c := cursor{strings.TrimSpace(text)}
	if literal := c; literal.literal() && literal.done() {
		it, err := constantOf(m)
		return &constant{it}, err
	}
	operand := plain(&c)
	if operand == nil {
		return m, nil
	}
	if c.done() {
		return s.adopt(operand), nil
	}
	if holds, literal, ok := comparand(&c); ok {
		return &comparison{operand: s.adopt(operand), holds: holds, literal: literal, fallback: m}, nil
	}
	return m, nil
}

// adopt gives a path its place in the reading of documents.
func (s *Set) adopt(operand source) source {
	if p, ok := operand.(*path); ok {
		p.leaf = s.paths.add(p.steps)
	}
	return operand
}

// comparand reads an operator and a text or number up to the end.
func comparand(c *cursor) (holds outcomes, it item, ok bool) {
	holds, ok = c.operator()
	if literal := *c; !ok || !literal.literal() || !literal.done() {
		return holds, it, false
	}
	m, err := parseMapping(c.rest)
	if err != nil {
		return holds, it, false
	}
	it, err = constantOf(m)
	return holds, it, err == nil && (it.token == str || it.token == goInt || it.token == goFloat)
}

// plain reads a path or a metadata key from c, or gives nil.
func plain(c *cursor) source {
	start := *c
	if key, ok := c.metadata(); ok {
		return metadata(key)
	}
	*c = start
	steps, ok := c.path()
	if !ok {
		return nil
	}
	return &path{steps: steps}
}

// assigned finds `this.a = 1`. Bloblang takes `this` for the name of a field then.
var assigned = regexp.MustCompile(`(?m)^\s*this(\.[^\s=(<>!]+)?\s*=([^=>]|$)`)

// parseMapping compiles a text as a query that sees `this` and metadata and
// gives {"v": value}: only as part of an object does a value come back from a
// batch executor as what it is.
func parseMapping(text string) (*mapping, error) {
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("empty: %w", ErrCompile)
	}
	// Alone first: then line and column of an error are those of the user's text.
	env := bloblang.GlobalEnvironment()
	if _, err := env.Parse(text); err != nil {
		if _, commented := env.Parse(text + "\n"); commented != nil {
			return nil, compileError(text, err)
		}
	}
	// An object literal leaves a key out when its value is deleted() or
	// nothing(), where an assignment would leave the message's own field. Line breaks
	// end a comment.
	if exec, err := env.Parse("root = {\"v\": (" + text + "\n)}"); err == nil {
		return &mapping{exec: exec, text: text}, nil
	}
	if at := assigned.FindString(text); at != "" {
		return nil, fmt.Errorf("%.200q: %q: %w: it sets a field of a message that is read only: write == to compare", text, strings.TrimSpace(at), ErrCompile)
	}
	exec, err := env.Parse(text + "\nroot = {\"v\": root}")
	if err != nil {
		return nil, compileError(text, err)
	}
	return &mapping{exec: exec, text: text, statements: true}, nil
}

func compileError(text string, err error) error {
	var parse *bloblang.ParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("%.200q: %w: %w", text, ErrCompile, err)
	}
	// Bloblang's message begins with the line, and the column where it knows it.
	return fmt.Errorf("%.200q, line %d column %d: %w: %w", text, parse.Line, parse.Column, ErrCompile, parse)
}

// constantOf asks Bloblang once for the value of a literal.
func constantOf(m *mapping) (it item, err error) {
	batch := service.MessageBatch{service.NewMessage(nil)}
	err = m.query(batch.BloblangExecutor(m.exec), 0, &it)
	return it, err
}
