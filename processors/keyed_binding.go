package processors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// keyedReader fills Key.
type keyedReader struct{ key expr.Slot }

// compileKeyed makes the compiler of a keyed state.
func compileKeyed(key string) compiler {
	return func(set *expr.Set) (reader, error) {
		slot, err := set.Key(fieldKey, key)
		return &keyedReader{slot}, err
	}
}

func (r *keyedReader) read(s *scratch, i int, row *windowing.Row) error {
	key, err := s.Get(i, r.key)
	if err != nil {
		return err
	}
	if err := s.DocumentErr(i); err != nil {
		return err
	}
	from := len(s.keys)
	s.keys = key.AppendKey(s.keys)
	row.Key = s.keys[from:len(s.keys):len(s.keys)]
	// The mapping wants the whole document. It is parsed here, off the owner.
	_, err = s.batch[i].AsStructured()
	return err
}

// keyedBinding is the binding of a keyed state.
type keyedBinding struct {
	*program
	failing
}

// Extract implements windowing.Binding.
func (b *keyedBinding) Extract(rows []windowing.Row) { b.extract(rows) }

// Render implements windowing.Binding: a row is there already, of a fault there is
// the timer.
func (b *keyedBinding) Render(res *windowing.Result) windowing.Message {
	timer, fault := res.Message.(windowing.KeyedTimer)
	if !fault {
		return res.Message
	}
	doc := map[string]any{"name": timer.Name, "at": secondsOf(timer.At)}
	if timer.Processing {
		doc["processing"] = true
	}
	m := service.NewMessage(nil)
	m.SetStructuredMut(map[string]any{"key": keyOf(res.Key), "timer": doc})
	m.SetError(res.Err)
	return m
}

// keyOf is a key as the mappings see it.
func keyOf(canonical []byte) any {
	v, _, err := agg.DecodeKey(canonical)
	if err != nil { // the reader made it from a value: it cannot be damaged
		panic(fmt.Sprintf("processors: key %x: %v", canonical, err))
	}
	return v.Any()
}

// keyedCode implements windowing.KeyedEvaluator with the mappings of the user. It
// belongs to the owner of the operator.
type keyedCode struct {
	onEvent, onTimer *bloblang.Executor
	states           stateReader
}

// Event implements windowing.KeyedEvaluator.
func (c *keyedCode) Event(call windowing.KeyedCall, row *windowing.Row) (effect windowing.KeyedEffect, err error) {
	m := row.Message.(*service.Message)
	view, err := c.view(call)
	if err != nil {
		return effect, err
	}
	if view["event"], err = m.AsStructured(); err != nil {
		return effect, err
	}
	view["event_time"] = secondsOf(row.Time)
	seen := m.Copy() // with the metadata
	seen.SetStructured(view)
	made, err := service.MessageBatch{seen}.BloblangExecutor(c.onEvent).Query(0)
	if err != nil {
		return effect, fmt.Errorf("%s: %w", fieldOnEvent, err)
	}
	var root any
	if made != nil {
		if root, err = made.AsStructured(); err != nil {
			root = "a text"
		}
	}
	if effect, err = c.effect(view, root); err != nil {
		return effect, fmt.Errorf("%s: %w", fieldOnEvent, err)
	}
	return effect, nil
}

// Timer implements windowing.KeyedEvaluator.
func (c *keyedCode) Timer(call windowing.KeyedCall, timer windowing.KeyedTimer) (effect windowing.KeyedEffect, err error) {
	view, err := c.view(call)
	if err != nil {
		return effect, err
	}
	view["timer"] = map[string]any{"name": timer.Name, "at": secondsOf(timer.At)}
	root, err := c.onTimer.Query(view)
	if err != nil {
		return effect, err
	}
	return c.effect(view, root)
}

// view is what both mappings see.
func (c *keyedCode) view(call windowing.KeyedCall) (map[string]any, error) {
	view := map[string]any{"key": keyOf(call.Key), "state": nil, "watermark": secondsOf(call.Watermark)}
	if call.State == "" {
		return view, nil
	}
	var err error
	if view["state"], err = c.states.read(call.State); err != nil {
		return nil, fmt.Errorf("the stored state %.100q: %w", call.State, err)
	}
	return view, nil
}

// stateReader parses states, with one decoder for all of them: a new one each time
// costs more than a small state.
type stateReader struct {
	decoder *json.Decoder
	rest    string // of the state, and a line break: a number ends with it
}

func (r *stateReader) read(text string) (state any, err error) {
	if r.decoder == nil {
		r.decoder = json.NewDecoder(r)
		r.decoder.UseNumber() // as Benthos reads payloads
	}
	r.rest = text + "\n"
	if err = r.decoder.Decode(&state); err != nil || r.rest != "" {
		r.decoder = nil // it is spent
	}
	return state, err
}

// Read implements io.Reader, for the decoder.
func (r *stateReader) Read(p []byte) (n int, err error) {
	if r.rest == "" {
		return 0, io.EOF
	}
	n = copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Mistakes of a mapping.
var (
	errRoot   = errors.New("set root.state, root.emit and root.timers, and nothing else of root")
	errEmit   = errors.New("root.emit is a list of rows, such as [ { \"key\": this.key } ]")
	errTimers = errors.New(`root.timers is a list of timers, such as [ { "name": "quiet", "at": this.event_time + 10 } ]`)
)

// effect reads what a mapping has made of root. One that sets nothing gives its
// input.
func (c *keyedCode) effect(view map[string]any, root any) (effect windowing.KeyedEffect, err error) {
	object, ok := root.(map[string]any)
	if !ok {
		return effect, fmt.Errorf("root is %s: %w", shown(root), errRoot)
	}
	if reflect.ValueOf(object).Pointer() == reflect.ValueOf(view).Pointer() {
		return effect, nil
	}
	for name, value := range object {
		switch name {
		case "state":
			effect.Set = true
			effect.State, err = stateOf(value)
		case "emit":
			effect.Rows, err = rowsToEmit(value)
		case "timers":
			effect.Timers, err = c.timersOf(value)
		default:
			err = fmt.Errorf("root.%.60s: %w", name, errRoot)
		}
		if err != nil {
			return windowing.KeyedEffect{}, err
		}
	}
	return effect, nil
}

// stateOf writes a state as it is kept, "" for null.
func stateOf(value any) (string, error) {
	if value == nil {
		return "", nil
	}
	text, err := agg.AppendAny(nil, value)
	if err != nil {
		return "", fmt.Errorf("root.state: %w", err)
	}
	return string(text), nil
}

func rowsToEmit(value any) (rows []windowing.Message, err error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("root.emit is %s: %w", shown(value), errEmit)
	}
	for i, item := range list {
		text, err := agg.AppendAny(nil, item)
		if item == nil {
			err = errEmit
		}
		if err != nil {
			return nil, fmt.Errorf("root.emit[%d] is %s: %w", i, shown(item), err)
		}
		rows = append(rows, service.NewMessage(text))
	}
	return rows, nil
}

func (c *keyedCode) timersOf(value any) (timers []windowing.KeyedTimer, err error) {
	if value == nil {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("root.timers is %s: %w", shown(value), errTimers)
	}
	if c.onTimer == nil && len(list) > 0 {
		return nil, fmt.Errorf("root.timers: there is no %s that they could run: add one", fieldOnTimer)
	}
	for i, item := range list {
		t, err := timerOf(item)
		if err != nil {
			return nil, fmt.Errorf("root.timers[%d]: %w", i, err)
		}
		timers = append(timers, t)
	}
	return timers, nil
}

func timerOf(item any) (t windowing.KeyedTimer, err error) {
	object, ok := item.(map[string]any)
	if !ok {
		return t, fmt.Errorf("it is %s: %w", shown(item), errTimers)
	}
	for name, value := range object {
		ok = true
		switch name {
		case "name":
			t.Name, ok = value.(string)
		case "at":
		case "processing":
			t.Processing, ok = value.(bool)
		default:
			return t, fmt.Errorf("%.60s is not a setting of a timer: use name, at and processing", name)
		}
		if !ok {
			return t, fmt.Errorf("%s is %s: name is a text and processing true or false: %w", name, shown(value), errTimers)
		}
	}
	if t.Name == "" {
		return t, fmt.Errorf("name is missing or empty: %w", errTimers)
	}
	if t.At, err = timeOfSeconds(object["at"]); err != nil {
		return t, fmt.Errorf("at: %w", err)
	}
	return t, nil
}

// mostShown is how many characters of a value stand in an error.
const mostShown = 60

// shown is a value for an error, as JSON where it can be written so.
func shown(value any) string {
	text := fmt.Sprint(value)
	if b, err := json.Marshal(value); err == nil {
		text = string(b)
	}
	if r := []rune(text); len(r) > mostShown {
		return string(r[:mostShown]) + "..."
	}
	return text
}
