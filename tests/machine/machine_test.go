package machine

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryFileIsRead(t *testing.T) {
	cases, err := Files("../testdata/cases")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for name, path := range cases {
		runs, err := LoadCase(path)
		require.NoError(t, err)
		for _, run := range runs {
			require.NotEmpty(t, run.Steps, name)
			require.NotEmpty(t, run.Config, name)
		}
	}
	goldens, err := Files("../testdata/golden")
	require.NoError(t, err)
	require.NotEmpty(t, goldens)
	for name, path := range goldens {
		run, err := LoadGolden(path)
		require.NoError(t, err)
		require.NotEmpty(t, run.Expected, name)
	}
}

// A comparison that finds nothing wrong with wrong rows would prove nothing.
func TestCompareFindsDifferences(t *testing.T) {
	runs, err := LoadCase("../testdata/cases/040.json")
	require.NoError(t, err)
	run := runs[0]
	row := func(sum, start string, batch int) []Got {
		return []Got{{Batch: batch, Step: batch, Payload: []byte(`{"window_start":"` + start +
			`","window_end":"1970-01-01T00:00:10Z","k":"a","count":3,"sum":` + sum + `,"min":1,"max":9007199254740993}`)}}
	}
	const sum, start = "9007199254740995", "1970-01-01T00:00:00Z"
	require.Empty(t, run.Compare(row(sum, start, 2)))
	require.Empty(t, run.Compare(row(sum, "1970-01-01T01:00:00+01:00", 2)), "the zone of a bound only fixes the instant")
	for name, got := range map[string][]Got{
		"nothing":     nil,
		"last digit":  row("9007199254740996", start, 2),
		"exponent":    row("9007199254740995e0", start, 2),
		"text":        row(`"9007199254740995"`, start, 2),
		"start":       row(sum, "1970-01-01T00:00:00.000000001Z", 2),
		"early":       row(sum, start, 1),
		"late":        row(sum, start, 3),
		"twice":       append(row(sum, start, 2), row(sum, start, 2)...),
		"extra field": {{Batch: 2, Step: 2, Payload: []byte(`{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:10Z","k":"a","count":3,"sum":9007199254740995,"min":1,"max":9007199254740993,"x":1}`)}},
		"error":       {{Batch: 2, Step: 2, Failed: true, Payload: row(sum, start, 2)[0].Payload}},
	} {
		if name == "late" {
			run.Steps = append(run.Steps, run.Steps[1])
		}
		require.NotEmpty(t, run.Compare(got), name)
	}
}

func TestNumbers(t *testing.T) {
	exact, loose := Run{}, Run{Tol: 1e-12}
	require.True(t, exact.sameNumber("0.1", "0.10"))
	require.True(t, exact.sameNumber("1e16", "10000000000000000"))
	require.False(t, exact.sameNumber("0.1", "0.1000000000000001"))
	require.False(t, exact.sameNumber("4", "4.0"))
	require.True(t, loose.sameNumber("1", "1.0000000000000001"))
	require.True(t, loose.sameNumber("-16.0", "-16"))
	require.True(t, loose.sameNumber("0", "0"))
	require.False(t, loose.sameNumber("1", "1.00000000001"))
}

func TestNanoseconds(t *testing.T) {
	for _, test := range []struct {
		unit Unit
		text string
		want int64
	}{
		{"s", "-21", -21e9}, {"", "25.2", 25.2e9}, {"s", "0.000000001", 1}, {"ms", "-1", -1e6}, {"us", "1769076020000500", 1769076020000500e3}, {"ns", "9223372036854775807", 9223372036854775807},
	} {
		got, err := test.unit.Nanoseconds(jsonNumber(test.text))
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
	for _, bad := range []string{"0.0000000001", "1e12", "x"} {
		_, err := Unit("s").Nanoseconds(jsonNumber(bad))
		require.Error(t, err, bad)
	}
}

func jsonNumber(text string) json.Number { return json.Number(text) }
