package machine

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// goldenFile is a recorded answer of Spark, see the README of the goldens.
type goldenFile struct {
	Engine, Query, Note string
	Seed                *int
	Config              []json.RawMessage
	Batches             [][]json.RawMessage
	Watermarks          []json.Number
	Dropped             []int
	Late                [][]int
	Expected            []map[string]any
	Compare             string
	Deviation           *struct {
		Spark, Design string
		Ours          []map[string]any
	}
}

// LoadGolden reads a golden as a run: the same query, judged by Spark's answer,
// or by ours where the file says that the two differ on purpose. Averages are
// doubles and get a tolerance; times of goldens are milliseconds.
func LoadGolden(path string) (Run, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Run{}, err
	}
	var file goldenFile
	if err := strict(data, &file); err != nil {
		return Run{}, fmt.Errorf("%s: %w", path, err)
	}
	run := Run{Name: strings.TrimSuffix(filepath.Base(path), ".json"), Unit: "ms", Config: file.Config, Clock: DefaultClock,
		Exact: true, Times: file.Compare != "rows", Tol: 1e-12}
	for _, batch := range file.Batches {
		run.Steps = append(run.Steps, Step{IsBatch: true, Batch: batch})
	}
	rows := file.Expected
	if file.Deviation != nil {
		rows = file.Deviation.Ours
	} else {
		run.LateRows = file.Late
		if run.Watermarks, err = watermarks(file.Watermarks); err != nil {
			return run, fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, row := range rows {
		e, err := parseExpected(row)
		if err != nil {
			return run, fmt.Errorf("%s: %w", path, err)
		}
		run.Expected = append(run.Expected, e)
	}
	late := 0
	for _, rows := range run.LateRows {
		late += len(rows)
	}
	counted := file.Deviation == nil && countsRows(file.Config)
	if counted {
		for _, n := range file.Dropped {
			late += n
		}
	}
	if counted || run.LateRows != nil {
		run.Late = &late
	}
	return run, nil
}

// countsRows says that what Spark has dropped by the watermark is rows of the
// input, which is so where joins and deduplications drop them and no window does.
func countsRows(config []json.RawMessage) bool {
	for _, raw := range config {
		var processor map[string]json.RawMessage
		if json.Unmarshal(raw, &processor) != nil {
			return false
		}
		for kind := range processor {
			if kind != "watermark" && kind != "interval_join" && kind != "watermark_dedupe" {
				return false
			}
		}
	}
	return true
}

// watermarks converts milliseconds. An empty number is JSON's null: unset. Where
// all are, Spark did not report it.
func watermarks(list []json.Number) ([]*int64, error) {
	if !slices.ContainsFunc(list, func(n json.Number) bool { return n != "" }) {
		return nil, nil
	}
	out := make([]*int64, len(list))
	for i, n := range list {
		if n == "" {
			continue
		}
		ns, err := Unit("ms").Nanoseconds(n)
		if err != nil {
			return nil, err
		}
		out[i] = &ns
	}
	return out, nil
}

// rat reads a JSON number exactly.
func rat(n json.Number) (*big.Rat, bool) { return new(big.Rat).SetString(n.String()) }
