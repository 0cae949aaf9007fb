package drive

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/connect-windowed/connect-windowed/tests/machine"
)

// Metadata that the product writes, see the design.
const (
	MetaRowKey       = "windowed_row_key"
	MetaRowID        = "windowed_row_id"
	MetaRevision     = "windowed_revision"
	MetaTiming       = "windowed_timing"
	MetaOperator     = "windowed_operator"
	MetaEventTime    = "windowed_event_time"
	MetaWatermark    = "windowed_watermark"
	MetaStart        = "windowed_start"
	MetaEnd          = "windowed_end"
	MetaLateOperator = "windowed_late_operator"
	MetaLateBy       = "windowed_late_by"
)

// metaInput is metadata on every message of a test; no emitted row may have it.
const metaInput = "test_input"

// Window is the definition of a window operator as far as its rows show it.
type Window struct {
	Name    string
	GroupBy []string // names in their order
	Revises bool     // a row may come again
}

// WindowOf reads the last window operator of a list, whose rows come out.
func WindowOf(processors []json.RawMessage) (w Window, ok bool) {
	for _, raw := range processors {
		var outer map[string]struct {
			Name    string
			GroupBy map[string]string `json:"group_by"`
			Output  string            `json:"output_mode"`
			Allowed string            `json:"allowed_lateness"`
		}
		if json.Unmarshal(raw, &outer) != nil {
			continue // a processor whose body is a text
		}
		for kind, body := range outer {
			if kind == "tumbling_window" || kind == "sliding_window" || kind == "cumulative_window" || kind == "session_window" {
				w = Window{Name: kind, GroupBy: slices.Sorted(maps.Keys(body.GroupBy))}
				if body.Name != "" {
					w.Name = body.Name
				}
				w.Revises = body.Output == "update" || body.Output == "complete" || body.Allowed != ""
				ok = true
			}
		}
	}
	return w, ok
}

// keyLimit is the length past which a row key is a prefix and a digest.
const keyLimit = 512

// CheckFinal says what is wrong with the metadata of a final row, nil if nothing.
func (w Window) CheckFinal(m Message) error {
	for _, key := range []string{MetaLateOperator, MetaLateBy, metaInput} {
		if _, has := m.Meta[key]; has {
			return fmt.Errorf("carries %s", key)
		}
	}
	if got := m.Get(MetaOperator); got != w.Name {
		return fmt.Errorf("%s is %q, not %q", MetaOperator, got, w.Name)
	}
	if got := m.Get(MetaTiming); got != "on_time" {
		return fmt.Errorf("%s is %q, not on_time", MetaTiming, got)
	}
	row := map[string]any{}
	if err := json.Unmarshal(m.Payload, &row); err != nil {
		return err
	}
	if err := w.checkTimes(m, row); err != nil {
		return err
	}
	return w.checkKey(m, row)
}

func (w Window) checkTimes(m Message, row map[string]any) error {
	at := map[string]int64{}
	for _, key := range []string{MetaStart, MetaEnd, MetaEventTime, MetaWatermark} {
		ns, err := machine.ParseTime(m.Get(key))
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if canonical := time.Unix(0, ns).UTC().Format(time.RFC3339Nano); canonical != m.Get(key) {
			return fmt.Errorf("%s is %q, RFC 3339 in UTC is %q", key, m.Get(key), canonical)
		}
		at[key] = ns
	}
	for field, key := range map[string]string{"window_start": MetaStart, "window_end": MetaEnd} {
		text, _ := row[field].(string)
		if ns, err := machine.ParseTime(text); err != nil || ns != at[key] {
			return fmt.Errorf("%s is %q, %s is %q", field, text, key, m.Get(key))
		}
	}
	if at[MetaEventTime] != at[MetaEnd]-1 {
		return fmt.Errorf("%s %s is not one nanosecond before the end %s", MetaEventTime, m.Get(MetaEventTime), m.Get(MetaEnd))
	}
	if at[MetaWatermark] < at[MetaEnd] {
		return fmt.Errorf("final at watermark %s, before its end %s", m.Get(MetaWatermark), m.Get(MetaEnd))
	}
	return nil
}

func (w Window) checkKey(m Message, row map[string]any) error {
	key, id := m.Get(MetaRowKey), m.Get(MetaRowID)
	for _, text := range []string{key, id} {
		if text == "" || slices.ContainsFunc([]byte(text), func(b byte) bool { return b < ' ' || b > '~' }) {
			return fmt.Errorf("row key or id %q is not printable ASCII", text)
		}
	}
	revision, err := strconv.ParseInt(m.Get(MetaRevision), 10, 64)
	if err != nil || revision < 1 {
		return fmt.Errorf("%s is %q", MetaRevision, m.Get(MetaRevision))
	}
	var keyParts, idParts []any
	if err := json.Unmarshal([]byte(key), &keyParts); err != nil {
		return fmt.Errorf("%s %q: %w", MetaRowKey, key, err)
	}
	if err := json.Unmarshal([]byte(id), &idParts); err != nil {
		return fmt.Errorf("%s %q: %w", MetaRowID, id, err)
	}
	if len(idParts) == 0 || fmt.Sprint(idParts[:len(idParts)-1]) != fmt.Sprint(keyParts) {
		return fmt.Errorf("%s %q does not start with the row key %q", MetaRowID, id, key)
	}
	if new(big.Float).SetFloat64(idParts[len(idParts)-1].(float64)).Text('f', 0) != m.Get(MetaRevision) {
		return fmt.Errorf("%s %q does not end with the revision %d", MetaRowID, id, revision)
	}
	return w.checkParts(m, keyParts, row)
}

// checkParts compares [name, [group values], start, end] with the row. A key past
// its limit is a prefix and a digest and only has to stay near the limit.
func (w Window) checkParts(m Message, parts []any, row map[string]any) error {
	var group []any
	for _, name := range w.GroupBy {
		group = append(group, row[name])
	}
	want, err := json.Marshal([]any{w.Name, append([]any{}, group...), m.Get(MetaStart), m.Get(MetaEnd)})
	if err != nil {
		return err
	}
	if len(want) > keyLimit {
		if n := len(m.Get(MetaRowKey)); n > 2*keyLimit {
			return fmt.Errorf("%s has %d bytes", MetaRowKey, n)
		}
		return nil
	}
	if got, err := json.Marshal(parts); err != nil || string(got) != string(want) {
		return fmt.Errorf("%s is %s, not %s", MetaRowKey, got, want)
	}
	return nil
}
