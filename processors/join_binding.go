package processors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// sides tells the side of a row by its source.
type sides struct {
	names  [2]string
	inHost []string // the sources of the watermark in the host, nil: messages carry them
}

// behind finds the sides among the sources of the watermark in the same host.
func (s *sides) behind(w *operator) error {
	s.inHost = w.sources
	return s.check(w.sources)
}

// check says whether both sides are sources.
func (s *sides) check(sources []string) error {
	for side, name := range s.names {
		if slices.Contains(sources, name) && name != "" {
			continue
		}
		if len(sources) == 0 || len(sources) == 1 && sources[0] == "" {
			return fmt.Errorf("%s.%s: %q is not known: %w, and that has none: give it sources", sideFields[side], fieldSource, name, errSide)
		}
		return fmt.Errorf("%s.%s: %q is not known: %w: use one of %s", sideFields[side], fieldSource, name, errSide, strings.Join(sources, ", "))
	}
	return nil
}

// of gives the side of a row.
func (s *sides) of(m *service.Message, source int32) (int, error) {
	o := origin{sources: s.inHost}
	if s.inHost == nil {
		if c := carriedBy(m); c != nil && c.pair != nil {
			o = *c.pair.of
		}
	}
	name, ok := o.source(source)
	if !ok {
		return windowing.NeitherSide, nil // an operator has made the row
	}
	if side := slices.Index(s.names[:], name); side >= 0 {
		return side, nil
	}
	return windowing.NeitherSide, s.check(o.sources)
}

// joinReader fills Key with the key of the row's side, and Args with the side.
type joinReader struct {
	sides *sides
	keys  [2]expr.Slot
}

// compileJoin makes the compiler of a join.
func compileJoin(cfg windowing.JoinConfig, s *sides) compiler {
	return func(set *expr.Set) (reader, error) {
		r := &joinReader{sides: s}
		for side, field := range sideFields {
			var err error
			if r.keys[side], err = set.Key(field+"."+fieldKey, cfg.Sides[side].Key); err != nil {
				return nil, err
			}
		}
		return r, nil
	}
}

func (r *joinReader) read(s *scratch, i int, row *windowing.Row) error {
	m := s.batch[i]
	side, err := r.sides.of(m, row.Source)
	if err != nil {
		return err
	}
	row.Args = s.room(1)
	row.Args[0] = agg.Int(int64(side))
	if side == windowing.NeitherSide {
		return nil
	}
	key, err := s.Get(i, r.keys[side])
	if err != nil {
		return err
	}
	// The payload becomes a part of another document.
	if err := s.DocumentErr(i); err != nil {
		return err
	}
	if _, err := m.AsBytes(); err != nil {
		return fmt.Errorf("the payload cannot be written as JSON: %w", err)
	}
	from := len(s.keys)
	s.keys = key.AppendKey(s.keys)
	row.Key = s.keys[from:len(s.keys):len(s.keys)]
	return nil
}

// jsonCodec keeps the payload of a message, on one line.
type jsonCodec struct{}

// Encode implements windowing.Codec. The reader has seen that it is JSON.
func (jsonCodec) Encode(b []byte, m windowing.Message) []byte {
	text := payload(m.(*service.Message))
	if bytes.ContainsAny(text, "\r\n") {
		var line bytes.Buffer
		if json.Compact(&line, text) == nil {
			text = line.Bytes()
		}
	}
	return append(b, text...)
}

// Decode implements windowing.Codec.
func (jsonCodec) Decode(data []byte) (windowing.Message, error) {
	return service.NewMessage(data), nil
}

// joinRows renders results of a join.
type joinRows struct {
	halved bool               // rows have their left side only
	result *bloblang.Executor // may be nil
}

// errNoResult says that a result mapping has deleted a row.
var errNoResult = errors.New("result: the mapping deletes the row: filter rows out with a processor behind the join")

func newJoinRows(conf *service.ParsedConfig, kind windowing.JoinType) (*joinRows, error) {
	w := &joinRows{halved: kind == windowing.SemiJoin || kind == windowing.AntiJoin}
	if !conf.Contains(fieldResult) {
		return w, nil
	}
	text, err := conf.FieldString(fieldResult)
	if err != nil {
		return nil, err
	}
	if w.result, err = compileResult(text); err != nil {
		return nil, fmt.Errorf("%s: %w", fieldResult, err)
	}
	return w, nil
}

// compileResult compiles an expression, or else a mapping.
func compileResult(text string) (*bloblang.Executor, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("must not be empty: give a Bloblang mapping over this.left and this.right, or leave it out")
	}
	if exec, err := bloblang.GlobalEnvironment().Parse("root = (" + text + "\n)"); err == nil {
		return exec, nil
	}
	exec, err := bloblang.GlobalEnvironment().Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%.200q is no Bloblang: %w", text, err)
	}
	return exec, nil
}

// message makes the message of a result. A result mapping that fails leaves the
// row as it is without one, with the error.
func (w *joinRows) message(res *windowing.Result) *service.Message {
	doc := make([]byte, 0, len(`{"left":null,"right":null}`)+len(res.Values[0].AsString())+len(res.Values[1].AsString()))
	doc = appendSide(append(doc, `{"left":`...), res.Values[windowing.LeftSide])
	if !w.halved {
		doc = appendSide(append(doc, `,"right":`...), res.Values[windowing.RightSide])
	}
	m := service.NewMessage(append(doc, '}'))
	if w.result == nil {
		return m
	}
	made, err := m.BloblangQuery(w.result)
	switch {
	case err == nil && made == nil:
		err = errNoResult
	case err != nil:
		err = fmt.Errorf("%s: %w", fieldResult, err)
	default:
		return made
	}
	res.Err = errors.Join(res.Err, err)
	m.SetError(res.Err)
	return m
}

func appendSide(b []byte, payload agg.Value) []byte {
	if payload.IsNull() {
		return append(b, "null"...)
	}
	return append(b, payload.AsString()...)
}

// joinBinding is the binding of a join.
type joinBinding struct {
	*program
	failing
	*joinRows
}

// Extract implements windowing.Binding.
func (b *joinBinding) Extract(rows []windowing.Row) { b.extract(rows) }

// Render implements windowing.Binding.
func (b *joinBinding) Render(res *windowing.Result) windowing.Message { return b.message(res) }
