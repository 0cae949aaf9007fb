package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Got is a row that came out.
type Got struct {
	Payload []byte
	Batch   int // batches sent before it came, counted from 1
	Step    int // the step during which it came, from 1
	AtEnd   bool
	Timing  string
	Failed  bool
}

func (g Got) String() string {
	text := string(g.Payload)
	if len(text) > 300 {
		text = fmt.Sprintf("%s… (%d bytes)", text[:300], len(text))
	}
	return fmt.Sprintf("batch %d, step %d: %s%s", g.Batch, g.Step, text, map[bool]string{true: " (error)"}[g.Failed])
}

func (e Expected) String() string {
	data, _ := json.Marshal(e.Fields)
	text := string(data)
	if len(text) > 300 {
		text = fmt.Sprintf("%s… (%d bytes)", text[:300], len(text))
	}
	when := fmt.Sprintf("after %d", e.After)
	switch {
	case e.AtEnd:
		when = "at the end"
	case e.Step > 0:
		when = fmt.Sprintf("step %d", e.Step)
	case e.By > 0:
		when = fmt.Sprintf("by %d", e.By)
	}
	return fmt.Sprintf("%s: [%s, %s) %s", when, e.Start, e.End, text)
}

// Compare matches rows with what is due and describes every difference, or
// returns "" when there is none.
func (r *Run) Compare(got []Got) string {
	used := make([]bool, len(r.Expected))
	places := map[span][]int{} // of the expected rows
	for i, e := range r.Expected {
		places[r.spanOf(e)] = append(places[r.spanOf(e)], i)
	}
	var diff []string
	for _, g := range got {
		match, seen := -1, false
		row, at := decode(g)
		for _, i := range places[at] {
			if r.matches(r.Expected[i], g, row) {
				seen = seen || used[i]
				if !used[i] {
					match = i
					break
				}
			}
		}
		switch {
		case match >= 0:
			used[match] = true
		case seen && r.Again:
		case seen:
			diff = append(diff, "came twice:     "+g.String())
		default:
			diff = append(diff, "not expected:   "+g.String())
		}
	}
	for i, e := range r.Expected {
		if !used[i] && !e.Optional {
			diff = append(diff, "did not come:   "+e.String())
		}
	}
	return strings.Join(diff, "\n")
}

// span is the bounds of a row in nanoseconds, the zero value for a row without.
type span struct {
	set        bool
	start, end int64
}

func (r *Run) spanOf(e Expected) span {
	if !e.Spanned {
		return span{}
	}
	start, errStart := r.Unit.Nanoseconds(e.Start)
	end, errEnd := r.Unit.Nanoseconds(e.End)
	if errStart != nil || errEnd != nil {
		panic(fmt.Sprint(errStart, errEnd))
	}
	return span{true, start, end}
}

// instructions takes out the fields that tell a test what a row is. Rows that pass
// and the sides of a join have them, expected rows do not.
func instructions(row map[string]any) {
	for name, value := range row {
		if strings.HasPrefix(name, "_") {
			delete(row, name)
		} else if inner, ok := value.(map[string]any); ok {
			instructions(inner)
		}
	}
}

// decode reads a row that came out, its bounds apart. A payload that is no object
// gives nil, which matches nothing.
func decode(g Got) (row map[string]any, at span) {
	dec := json.NewDecoder(bytes.NewReader(g.Payload))
	dec.UseNumber()
	if dec.Decode(&row) != nil {
		return nil, span{}
	}
	instructions(row)
	start, okStart := row["window_start"].(string)
	end, okEnd := row["window_end"].(string)
	if !okStart || !okEnd {
		return row, span{}
	}
	var errs [2]error
	at.set = true
	at.start, errs[0] = ParseTime(start)
	at.end, errs[1] = ParseTime(end)
	if errs[0] != nil || errs[1] != nil {
		return nil, span{}
	}
	delete(row, "window_start")
	delete(row, "window_end")
	return row, at
}

// DueBy counts the rows that must have come when step (from 1) is over. Where the
// run does not say when, they are due after the last.
func (r *Run) DueBy(step int) int {
	batch, n := 0, 0
	if !r.Times && step < len(r.Steps) {
		return 0
	}
	for _, s := range r.Steps[:step] {
		if s.IsBatch {
			batch++
		}
	}
	ended := r.Steps[step-1].End
	for _, e := range r.Expected {
		switch {
		case e.Optional:
		case e.AtEnd && !ended, e.Step > step, e.After > batch, e.By > batch:
		default:
			n++
		}
	}
	return n
}

func (r *Run) matches(e Expected, g Got, row map[string]any) bool {
	if e.Failed != g.Failed || (e.Timing != "" && e.Timing != g.Timing) {
		return false
	}
	if r.Times {
		switch {
		case e.AtEnd:
			if !g.AtEnd {
				return false
			}
		case e.Step > 0:
			if g.Step != e.Step {
				return false
			}
		case e.By > 0:
			if g.Batch > e.By {
				return false
			}
		case g.Batch != e.After || !r.Steps[g.Step-1].IsBatch:
			return false
		}
	}
	if row == nil {
		return false
	}
	judge := *r
	judge.floats = e.Floats
	return judge.equal(e.Fields, row)
}

// equal compares JSON values. A whole number that is written without point and
// exponent must come out in the same digits; other numbers are compared by value,
// within the tolerance of the run.
func (r *Run) equal(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		return ok && len(w) == len(g) && r.sameFields(w, g)
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(w, g, r.equal)
	case json.Number:
		g, ok := got.(json.Number)
		return ok && r.sameNumber(w, g)
	}
	return want == got
}

// sameFields compares objects with the same number of fields.
func (r *Run) sameFields(want, got map[string]any) bool {
	exact := *r
	exact.Tol = 0
	for name, w := range want {
		judge := r
		if r.Loose != "" && name != r.Loose {
			judge = &exact
		}
		if g, ok := got[name]; !ok || !judge.equal(w, g) {
			return false
		}
	}
	return true
}

func (r *Run) sameNumber(want, got json.Number) bool {
	if want == got {
		return true
	}
	if r.floats && r.Tol == 0 {
		a, errA := want.Float64()
		b, errB := got.Float64()
		return errA == nil && errB == nil && a == b
	}
	if r.Tol == 0 && !strings.ContainsAny(want.String(), ".eE") {
		return false
	}
	a, okA := rat(want)
	b, okB := rat(got)
	if !okA || !okB {
		return false
	}
	limit := new(big.Rat).SetFloat64(r.Tol)
	if scale := new(big.Rat).Abs(a); scale.Cmp(big.NewRat(1, 1)) > 0 {
		limit.Mul(limit, scale)
	}
	return new(big.Rat).Abs(new(big.Rat).Sub(a, b)).Cmp(limit) <= 0
}
