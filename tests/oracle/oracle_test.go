package oracle_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/machine"
	"github.com/connect-windowed/connect-windowed/tests/oracle"
)

// The oracle is judged by Spark's recorded answers before it judges anything.
func TestOracleAgreesWithTheGoldens(t *testing.T) {
	second := int64(time.Second)
	parts := []string{"0", "1"}
	for name, q := range map[string]oracle.Query{
		"tumbling-10s":                 {Sources: []oracle.Source{{Delay: 5 * second}}, Size: 10 * second},
		"tumbling-1h-offset":           {Sources: []oracle.Source{{Delay: 600 * second}}, Size: 3600 * second, Offset: 900 * second},
		"tumbling-nulls":               {Sources: []oracle.Source{{Delay: 5 * second}}, Size: 10 * second},
		"union-max":                    {Sources: []oracle.Source{{Delay: 5 * second, Partitions: parts}}, Max: true, Size: 10 * second},
		"union-min":                    {Sources: []oracle.Source{{Delay: 5 * second, Partitions: parts}}, Size: 10 * second},
		"union-min-two-delays":         {Sources: []oracle.Source{{Delay: 2 * second}, {Delay: 9 * second}}, Size: 10 * second},
		"example-bank":                 {Sources: []oracle.Source{{Delay: 600 * second}}, Size: 300 * second},
		"example-clicks":               {Sources: []oracle.Source{{Delay: 600 * second}}, Size: 300 * second},
		"example-older-than-watermark": {Sources: []oracle.Source{{Delay: 600 * second}}, Size: 300 * second},
		"deviation-before-1970":        {Sources: []oracle.Source{{}}, Size: 10 * second},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := machine.LoadGolden("../testdata/golden/" + name + ".json")
			require.NoError(t, err)
			check(t, run, q)
		})
	}
}

func check(t *testing.T, run machine.Run, q oracle.Query) {
	var batches [][]oracle.Row
	for _, step := range run.Steps {
		var batch []oracle.Row
		for _, raw := range step.Batch {
			batch = append(batch, row(t, raw, len(q.Sources) > 1))
		}
		batches = append(batches, batch)
	}
	answer := q.Answer(batches)
	var got []machine.Got
	for _, r := range answer.Results {
		got = append(got, machine.Got{Batch: r.After, Step: r.After, Payload: payload(t, run, r)})
	}
	require.Empty(t, run.Compare(got))
	if run.LateRows != nil {
		var late []int
		for _, rows := range run.LateRows {
			late = append(late, rows...)
		}
		require.ElementsMatch(t, late, answer.Late)
	}
	if run.Watermarks != nil {
		require.Equal(t, run.Watermarks, answer.Watermarks)
	}
}

func row(t *testing.T, raw json.RawMessage, bySource bool) oracle.Row {
	var in struct {
		Row int
		K   json.RawMessage
		TS  *int64
		V   *int64
		P   int `json:"_p"`
	}
	require.NoError(t, json.Unmarshal(raw, &in))
	out := oracle.Row{ID: in.Row, Group: string(in.K), Invalid: in.TS == nil, Partition: fmt.Sprint(in.P)}
	if bySource {
		out.Source = in.P
	}
	if in.TS != nil {
		out.Time = *in.TS * int64(time.Millisecond)
	}
	if in.V != nil {
		out.Value = new(big.Rat).SetInt64(*in.V)
	}
	return out
}

// payload writes a result with the fields of the golden.
func payload(t *testing.T, run machine.Run, r oracle.Result) []byte {
	fields := map[string]any{"window_start": text(r.Start), "window_end": text(r.End), "k": json.RawMessage(r.Group), "n": r.Count}
	if _, ok := run.Expected[0].Fields["sum"]; ok {
		for name, value := range map[string]*big.Rat{"sum": r.Sum, "min": r.Min, "max": r.Max, "avg": r.Avg()} {
			fields[name] = nil
			if value != nil {
				f, _ := value.Float64()
				fields[name] = f
			}
		}
	}
	data, err := json.Marshal(fields)
	require.NoError(t, err)
	return data
}

func text(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

func TestStartBefore1970(t *testing.T) {
	q := oracle.Query{Size: 10, Offset: 3}
	for at, want := range map[int64]int64{-8: -17, -7: -7, -1: -7, 0: -7, 2: -7, 3: 3, 12: 3, 13: 13} {
		require.Equal(t, []int64{want}, q.Starts(at), at)
	}
}

func TestStartsOfSlidingWindows(t *testing.T) {
	q := oracle.Query{Size: 12, Slide: 5, Offset: 1}
	for at, want := range map[int64][]int64{0: {-4, -9}, 1: {1, -4, -9}, 2: {1, -4, -9}, 3: {1, -4}, 5: {1, -4}, 6: {6, 1, -4}, -4: {-4, -9, -14}} {
		require.Equal(t, want, q.Starts(at), at)
	}
}
