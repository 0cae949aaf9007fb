// Package examples runs what a reader of the examples runs: the binary, on every
// file of config/examples, from the root of the repository.
package examples

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"
)

var update = flag.Bool("update", false, "write what the examples print to their golden files")

// binary and root are set up once for all tests.
var binary, root string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(withBinary(m.Run))
}

func withBinary(run func() int) int {
	var err error
	if root, err = filepath.Abs("../.."); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "connect-windowed-examples-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "connect-windowed")
	build := exec.Command("go", "build", "-o", binary, "./cmd/connect-windowed")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	return run()
}

// workdir is a folder that looks like the root of the repository to an example
// and keeps the state that it writes.
func workdir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"config", "tests"} {
		require.NoError(t, os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)))
	}
	return dir
}

// patience is how long a command may take. One that takes longer is told to
// print its goroutines and die.
const patience = 2 * time.Minute

// command runs the binary in dir and returns what it printed.
func command(t *testing.T, dir string, env []string, args ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var out, logs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &logs
	err = cmd.Run()
	t.Logf("connect-windowed %s: %v\n%s", strings.Join(args, " "), err, logs.String())
	return out.String(), err
}

// rows parses the lines that an example printed. Numbers keep their digits.
func rows(t *testing.T, text string) (rows []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var row map[string]any
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&row), "line %q", line)
		rows = append(rows, row)
	}
	return rows
}

// example is how one file of config/examples is run and checked.
type example struct {
	env   []string
	check func(t *testing.T, name, printed string)
	// again: a second run on the state of the first prints nothing more.
	again bool
	// file and query find the rows in a database of SQLite, in place of what is
	// printed. A second run leaves them as they are.
	file, query string
	// elsewhere: it needs a server; here it is only linted and tested, and run by the
	// tests of this folder.
	elsewhere string
}

var examples = map[string]example{
	"quickstart":      {check: likeGolden, again: true},
	"moving_average":  {check: likeGolden, again: true},
	"business_days":   {check: likeGolden, again: true},
	"rollup":          {check: likeGolden, again: true},
	"live_totals":     {check: likeGolden, again: true},
	"earthquakes":     {check: likeGolden, again: true},
	"sessions":        {check: likeGolden, again: true},
	"orders_payments": {check: likeGolden, again: true},
	"webhook_dedupe":  {check: likeGoldenInAnyOrder, again: true},
	"order_streak":    {check: likeGolden, again: true},
	"quiet_customers": {check: likeGolden, again: true},
	"clickstream":     {check: countsEveryClick, env: []string{"CLICKS=500", "INTERVAL=2ms"}},
	"day_so_far":      {check: endsWithEveryOrder, env: []string{"ORDERS=600", "INTERVAL=1ms", "EARLY=100ms"}},
	"sqlite_totals":   {check: likeGolden, again: true, file: "state/sqlite_totals/totals.db", query: "SELECT * FROM totals ORDER BY window_start, page"},
	"sqlite_visits":   {check: likeGolden, again: true, file: "state/sqlite_visits/visits.db", query: "SELECT * FROM visits ORDER BY visit_start"},

	"kafka_orders":      {elsewhere: "tests/kafka"},
	"kafka_totals":      {elsewhere: "tests/kafka"},
	"kafka_to_postgres": {elsewhere: "tests/postgres"},
}

func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "config/examples/*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, len(examples), "files: %v", files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			ex, ok := examples[name]
			require.True(t, ok, "%s has no entry here", file)
			ex.run(t, name, filepath.Join("config/examples", name+".yaml"))
		})
	}
}

func (ex example) run(t *testing.T, name, file string) {
	dir := workdir(t)
	_, err := command(t, dir, nil, "lint", file)
	require.NoError(t, err)
	out, err := command(t, dir, nil, "test", file)
	require.NoError(t, err, out)
	require.Contains(t, out, "succeeded")
	require.NoDirExists(t, filepath.Join(dir, "state"), "lint and test leave state alone")

	if ex.elsewhere != "" {
		require.DirExists(t, filepath.Join(root, ex.elsewhere))
		return
	}
	printed := ex.outcome(t, dir, file)
	ex.check(t, name, printed)
	if !ex.again {
		return
	}
	want := "" // a second run has nothing new to say
	if ex.file != "" {
		want = printed // and leaves the table as it is
	}
	require.Equal(t, want, ex.outcome(t, dir, file), "a second run")
}

// outcome runs the example and gives what it printed, or stored. Where an output
// prints nothing, the log is what is printed.
func (ex example) outcome(t *testing.T, dir, file string) string {
	printed, err := command(t, dir, ex.env, "run", "--set", "http.enabled=false", file)
	require.NoError(t, err)
	if ex.file != "" {
		return stored(t, filepath.Join(dir, ex.file), ex.query)
	}
	return printed
}

// stored gives what a query finds in a database of SQLite, a JSON object in a line.
func stored(t *testing.T, file, query string) string {
	t.Helper()
	require.FileExists(t, file)
	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	defer db.Close()
	found, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer found.Close()
	columns, err := found.Columns()
	require.NoError(t, err)
	var lines strings.Builder
	for found.Next() {
		values, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		require.NoError(t, found.Scan(to...))
		row := map[string]any{}
		for i, name := range columns {
			row[name] = values[i]
		}
		line, err := json.Marshal(row)
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	require.NoError(t, found.Err())
	return lines.String()
}

// likeGolden compares with what is checked in, row by row.
func likeGolden(t *testing.T, name, printed string) {
	golden := filepath.Join(root, "tests/testdata/examples", name+".ndjson")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(printed), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, rows(t, string(want)), rows(t, printed))
}

// likeGoldenInAnyOrder is for an output that refuses some rows at first.
func likeGoldenInAnyOrder(t *testing.T, name, printed string) {
	want, err := os.ReadFile(filepath.Join(root, "tests/testdata/examples", name+".ndjson"))
	require.NoError(t, err)
	require.ElementsMatch(t, rows(t, string(want)), rows(t, printed))
}

// countsEveryClick checks what made-up clicks allow to check.
func countsEveryClick(t *testing.T, _, printed string) {
	var clicks int64
	for _, row := range rows(t, printed) {
		n, err := row["clicks"].(json.Number).Int64()
		require.NoError(t, err)
		users, err := row["users"].(json.Number).Int64()
		require.NoError(t, err)
		require.Contains(t, []any{"/", "/search", "/cart"}, row["page"])
		require.Positive(t, users)
		require.LessOrEqual(t, users, min(n, 40))
		clicks += n
	}
	require.EqualValues(t, 500, clicks)
}

// endsWithEveryOrder checks what made-up orders allow to check: rows come early and
// grow, and the last ones count all orders.
func endsWithEveryOrder(t *testing.T, _, printed string) {
	number := func(row map[string]any, field string) int64 {
		n, err := row[field].(json.Number).Int64()
		require.NoError(t, err)
		return n
	}
	last, early := map[any]map[string]any{}, 0
	for _, row := range rows(t, printed) {
		if row["timing"] == "early" {
			early++
		}
		if before, known := last[row["key"]]; known {
			require.Greater(t, number(row, "revision"), number(before, "revision"))
		}
		last[row["key"]] = row
	}
	require.Positive(t, early)
	var orders int64
	for _, row := range last {
		require.Equal(t, "on_time", row["timing"])
		require.GreaterOrEqual(t, number(row, "turnover"), int64(100))
		orders += number(row, "orders")
	}
	require.EqualValues(t, 600, orders)
}

// A file that was rewritten under its counted lines stops the run with status 1,
// and says so; what was counted is left as it is.
func TestRewrittenFileEndsTheRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(root, "config"))))
	run := []string{"run", "--set", "http.enabled=false", "config/examples/quickstart.yaml"}
	printed, err := command(t, dir, nil, run...)
	require.NoError(t, err)
	require.NotEmpty(t, printed)

	orders := filepath.Join(dir, "config/examples/data/orders.ndjson")
	text, err := os.ReadFile(orders)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(orders, bytes.Replace(text, []byte(`"amount":74.00`), []byte(`"amount":75.00`), 1), 0o600))
	printed, err = command(t, dir, nil, run...)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Empty(t, printed)

	require.NoError(t, os.WriteFile(orders, text, 0o600))
	printed, err = command(t, dir, nil, run...)
	require.NoError(t, err, "the old file again")
	require.Empty(t, printed)
}
