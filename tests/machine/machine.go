// Package machine reads the case files and the goldens of tests/testdata and
// compares what came out with what they expect. It knows nothing of the product.
package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Run is one run of a case: a configuration, what happens, what comes out.
type Run struct {
	Name     string            // case and run, for messages
	Unit     Unit              // of start and end
	Config   []json.RawMessage // the list of processors
	Position json.RawMessage   // of the host, nil where messages carry none
	OnEnd    string            // of the input host, "" for its default
	Clock    time.Time         // the wall clock at the start
	Steps    []Step
	Expected []Expected
	Exact    bool    // rows carry no more than what is expected, and nothing else comes out
	Times    bool    // compare after, by and step
	Again    bool    // at_least_once: a row may come several times
	Tol      float64 // for floats, 0: exact
	Loose    string  // the one field that Tol is for, "": all

	Late       *int // rows late, nil: not said
	Errors     *int // rows that leave with an error, nil: not said
	Duplicates *int // rows dropped as duplicates, nil: not said
	State      *int // entries in state at the end, nil: not said
	LateRows   [][]int
	Watermarks []*int64 // W after each batch, ns, nil: unset; the slice is nil where not said

	floats bool // of the row that is compared
}

// Step is one thing that happens. Exactly one of the fields that name an action
// is set; Refuse and KillBeforeAck belong to a batch.
type Step struct {
	Batch   []json.RawMessage
	IsBatch bool
	Tick    time.Duration // time passes
	Wall    time.Duration // the wall clock alone is stepped
	Restart bool
	Kill    bool
	End     bool

	Refuse        int
	KillBeforeAck bool
	Config        []json.RawMessage // of a restart, nil: the same
	Error         string            // of a restart: the start fails and names this
}

// Expected is one row that is due.
type Expected struct {
	Fields   map[string]any // numbers are json.Number; without start and end where Spanned
	Spanned  bool
	Start    json.Number
	End      json.Number
	After    int // batch, 0: not said
	By       int
	Step     int // step, from 1
	AtEnd    bool
	Timing   string
	Optional bool
	Failed   bool // carries an error
	Floats   bool // numbers are compared as float64, not by their digits
}

// LoadCase reads a case file.
func LoadCase(path string) ([]Run, error) {
	var file struct {
		Case string `json:"case"`
		Unit Unit   `json:"unit"`
		Runs []json.RawMessage
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if file.Runs == nil {
		file.Runs = []json.RawMessage{data}
	}
	var runs []Run
	for _, raw := range file.Runs {
		run, err := parseRun(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		run.Unit = file.Unit
		run.Name = strings.TrimSpace(file.Case + " " + run.Name)
		runs = append(runs, run)
	}
	return runs, nil
}

// rawRun is a run as it stands in a case file. An unknown field is an error:
// what the reader does not know, the tests would not check.
type rawRun struct {
	Case, Name, Unit   string
	Config             []json.RawMessage
	Position           json.RawMessage
	OnEnd              string `json:"on_end"`
	Clock              json.Number
	Batches            [][]json.RawMessage
	Steps              []rawStep
	Expected           []map[string]any
	ExpectedErrors     []map[string]any `json:"expected_errors"`
	Late, Errors       *int
	DroppedDuplicates  *int `json:"dropped_duplicates"`
	State              *int
	Tolerance          float64
	AtLeastOnce        bool `json:"at_least_once"`
	Compare            string
	Query, Note, Title string
}

type rawStep struct {
	Batch   []json.RawMessage
	Tick    string
	Wall    string
	Restart json.RawMessage
	Kill    json.RawMessage
	End     bool
	Refuse  int
}

// DefaultClock is the wall clock of a run that names none.
var DefaultClock = time.Unix(1_800_000_000, 0)

func parseRun(data json.RawMessage) (Run, error) {
	var raw rawRun
	if err := strict(data, &raw); err != nil {
		return Run{}, err
	}
	run := Run{Name: raw.Name, Config: raw.Config, Position: raw.Position, OnEnd: raw.OnEnd, Clock: DefaultClock,
		Exact: true, Times: true, Again: raw.AtLeastOnce, Tol: raw.Tolerance, Late: raw.Late, Errors: raw.Errors,
		Duplicates: raw.DroppedDuplicates, State: raw.State}
	if raw.Clock != "" {
		seconds, err := raw.Clock.Int64()
		if err != nil {
			return Run{}, err
		}
		run.Clock = time.Unix(seconds, 0)
	}
	for _, batch := range raw.Batches {
		run.Steps = append(run.Steps, Step{IsBatch: true, Batch: batch})
	}
	for i, s := range raw.Steps {
		step, err := s.step()
		if err != nil {
			return Run{}, fmt.Errorf("run %q: step %d: %w", raw.Name, i+1, err)
		}
		run.Steps = append(run.Steps, step)
	}
	for failed, rows := range [][]map[string]any{raw.Expected, raw.ExpectedErrors} {
		for _, row := range rows {
			e, err := parseExpected(row)
			if err != nil {
				return Run{}, fmt.Errorf("run %q: %w", raw.Name, err)
			}
			e.Failed = failed == 1
			run.Expected = append(run.Expected, e)
		}
	}
	if run.needsEnd() {
		run.Steps = append(run.Steps, Step{End: true})
	}
	return run, nil
}

// needsEnd says that rows are due at an end which no step spells out.
func (r *Run) needsEnd() bool {
	for _, e := range r.Expected {
		if e.AtEnd {
			return true
		}
	}
	return false
}

func (s rawStep) step() (step Step, err error) {
	step = Step{Batch: s.Batch, IsBatch: s.Batch != nil, End: s.End, Refuse: s.Refuse}
	if s.Tick != "" {
		if step.Tick, err = time.ParseDuration(s.Tick); err != nil {
			return step, err
		}
	}
	if s.Wall != "" {
		if step.Wall, err = time.ParseDuration(s.Wall); err != nil {
			return step, err
		}
	}
	switch text := string(s.Kill); text {
	case "":
	case "true":
		step.Kill = true
	case `"before_ack"`:
		step.KillBeforeAck = true
	default:
		return step, fmt.Errorf("kill %s is not known", text)
	}
	if s.Restart != nil {
		step.Restart = true
		if string(s.Restart) != "true" {
			var how struct {
				Config []json.RawMessage
				Error  string
			}
			if err := strict(s.Restart, &how); err != nil {
				return step, err
			}
			step.Config, step.Error = how.Config, how.Error
		}
	}
	return step, nil
}

func parseExpected(row map[string]any) (Expected, error) {
	e := Expected{Fields: map[string]any{}}
	for field, value := range row {
		switch field {
		case "after":
			if value == "end" {
				e.AtEnd = true
				continue
			}
			e.After = number(value)
		case "by":
			e.By = number(value)
		case "step":
			e.Step = number(value)
		case "start":
			e.Start, e.Spanned = value.(json.Number), true
		case "end":
			e.End, e.Spanned = value.(json.Number), true
		case "_step": // the operator of a chain: only rows of the last one come out
		case "_timing":
			e.Timing = value.(string)
		case "optional":
			e.Optional = value.(bool)
		default:
			if strings.HasPrefix(field, "_") {
				return e, fmt.Errorf("expected row: field %q is not known", field)
			}
			e.Fields[field] = value
		}
	}
	return e, nil
}

func number(value any) int {
	n, err := value.(json.Number).Int64()
	if err != nil {
		panic(err)
	}
	return int(n)
}

// strict decodes with exact numbers and refuses unknown fields.
func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// Files gives the JSON files of a folder by their name without the ending.
func Files(dir string) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	files := map[string]string{}
	for _, path := range paths {
		files[strings.TrimSuffix(filepath.Base(path), ".json")] = path
	}
	return files, err
}
