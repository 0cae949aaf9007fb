package sql

import (
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

// lintsOf gives what lint says about an output.
func lintsOf(t testing.TB, name, conf string) (lints []string) {
	t.Helper()
	text := "  " + strings.ReplaceAll(strings.TrimSpace(conf), "\n", "\n  ")
	found, err := service.GlobalEnvironment().NewComponentConfigLinter().LintOutputYAML([]byte(name + ":\n" + text + "\n"))
	require.NoError(t, err)
	for _, l := range found {
		lints = append(lints, l.What)
	}
	return lints
}

const (
	goodTarget = "driver: sqlite\ndsn: file:./x.db\n"
	goodInsert = goodTarget + intoT
	goodRaw    = goodTarget + "query: SELECT 1\n"
)

// Set-ups that must not start: lint and the start say the same.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		about, output, conf string
		parts               []string
	}{
		{"another database", nameInsert, strings.Replace(goodInsert, "sqlite", "mysql", 1), []string{"driver", `"mysql"`, "pgx, postgres, sqlite"}},
		{"no database", nameRaw, strings.Replace(goodRaw, "sqlite", `""`, 1), []string{"driver", `""`, "pgx, postgres, sqlite"}},
		{"no DSN", nameRaw, "driver: sqlite\ndsn: ''\nquery: SELECT 1", []string{"dsn: must not be empty", "file:"}},
		{"no DSN for PostgreSQL", nameRaw, "driver: postgres\ndsn: ''\nquery: SELECT 1", []string{"dsn: must not be empty", "postgres://"}},
		{"a DSN of MySQL", nameRaw, "driver: postgres\ndsn: user:secret@tcp(localhost:3306)/db\nquery: SELECT 1", []string{"dsn: is not understood", "PostgreSQL wants postgres://"}},
		{"a scheme with a slip", nameRaw, "driver: postgres\ndsn: postgre://u:secret@localhost/db?sslmode=disable\nquery: SELECT 1", []string{"dsn: is not understood", "PostgreSQL wants postgres://"}},
		{"a DSN of PostgreSQL", nameRaw, "driver: sqlite\ndsn: postgres://u:secret@localhost/db\nquery: SELECT 1", []string{"dsn", "is not a file", "file:./folder/file.db"}},
		{"parameters", nameRaw, "driver: sqlite\ndsn: file:./x.db?a=%zz\nquery: SELECT 1", []string{"dsn", "not a list of parameters"}},
		{"no table", nameInsert, strings.Replace(goodInsert, "table: t", "table: ' '", 1), []string{"table: must not be empty"}},
		{"no columns", nameInsert, strings.Replace(goodInsert, "[ k, revision, v ]", "[]", 1), []string{"columns: must not be empty", "args_mapping"}},
		{"a duration", nameInsert, goodInsert + "conn_max_idle_time: 5", []string{"conn_max_idle_time", `"5"`, "30s"}},
		{"another duration", nameRaw, goodRaw + "conn_max_life_time: soon", []string{"conn_max_life_time", `"soon"`, "30s"}},
		{"no query", nameRaw, goodTarget, []string{"query: must be given", "queries"}},
		{"no queries", nameRaw, goodTarget + "queries: []", []string{"query: must be given", "queries"}},
		{"an empty query", nameRaw, goodTarget + "query: ''", []string{"query: must not be empty"}},
		{"an empty query in the list", nameRaw, goodTarget + "queries: [ { query: ' ' } ]", []string{"query: must not be empty"}},
		{"arguments for nothing", nameRaw, goodTarget + "args_mapping: root = []\nqueries: [ { query: SELECT 1 } ]", []string{"args_mapping: is without a query"}},
		{"never chosen", nameRaw, goodTarget + "queries: [ { query: SELECT 1 }, { query: SELECT 2, when: root = true } ]", []string{`query "SELECT 1"`, "never chosen"}},
		{"never chosen behind query", nameRaw, goodRaw + "queries: [ { query: SELECT 2, when: root = true } ]", []string{`query "SELECT 1"`, "never chosen"}},
		{"interpolation", nameRaw, goodTarget + "query: 'SELECT ${! nonsense( }'\nunsafe_dynamic_query: true", []string{"query", "unsafe_dynamic_query"}},
	} {
		t.Run(c.about, func(t *testing.T) {
			_, err := construct(c.output, c.conf)
			require.Error(t, err)
			lints := lintsOf(t, c.output, c.conf)
			require.Equal(t, []string{err.Error()}, lints, "lint and start")
			for _, part := range c.parts {
				require.ErrorContains(t, err, part)
			}
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

// What Benthos finds by the spec is said once.
func TestMistakesThatBenthosFinds(t *testing.T) {
	for _, c := range []struct{ output, conf, part string }{
		{nameInsert, goodInsert + "upsert: true", "upsert"},
		{nameRaw, goodRaw + "exec_only: true", "exec_only"},
		{nameRaw, goodTarget + "queries: [ { query: SELECT 1, exec_only: true } ]", "exec_only"},
		{nameInsert, goodInsert + "secret_name: x", "secret_name"},
		{nameInsert, strings.Replace(goodInsert, "root = [ this.k", "root = [ this.k this", 1), "expected"},
		{nameInsert, strings.Replace(goodInsert, "table: t\n", "", 1), "table"},
		{nameRaw, goodRaw + "batching: { cuont: 1 }", "cuont"},
	} {
		lints := lintsOf(t, c.output, c.conf)
		require.Len(t, lints, 1, c.conf)
		require.Contains(t, lints[0], c.part)
	}
}

func TestGoodConfigurations(t *testing.T) {
	for _, c := range []struct{ output, conf string }{
		{nameInsert, goodInsert},
		{nameInsert, goodInsert + "conn_max_idle_time: 1m\nconn_max_life_time: -1s\nconn_max_idle: 0\nconn_max_open: 3\nmax_in_flight: 1\nbatching: { count: 10, period: 1s }\nprefix: WITH x AS (SELECT 1)\n"},
		{nameRaw, goodRaw + "queries: [ { query: SELECT 2 } ]"},
		{nameRaw, "driver: pgx\ndsn: host=localhost user=u\nquery: SELECT 1"},
		{nameRaw, "driver: sqlite\ndsn: ./plain.db\nquery: SELECT 1"},
		{nameRaw, "driver: sqlite\ndsn: ':memory:'\nquery: SELECT 1"},
	} {
		require.Empty(t, lintsOf(t, c.output, c.conf), c.conf)
		_, err := construct(c.output, c.conf)
		require.NoError(t, err)
	}
}

func TestStatementText(t *testing.T) {
	w, err := construct(nameInsert, `
driver: postgres
dsn: host=localhost
table: '"T"'
columns: [ a, '"B"' ]
args_mapping: root = []
prefix: WITH x AS (SELECT 1)
options: [ OR, IGNORE ]
suffix: ON CONFLICT DO NOTHING
`)
	require.NoError(t, err)
	require.Equal(t, `WITH x AS (SELECT 1) INSERT OR IGNORE INTO "T" (a, "B") VALUES ($1, $2) ON CONFLICT DO NOTHING`, w.maker.(*insert).stmt.text)
}

// Defaults that the DSN may override.
func TestDSN(t *testing.T) {
	for dsn, want := range map[string]string{
		"file:./x.db":       "file:./x.db?_error_rc=1&_pragma=busy_timeout%285000%29&_pragma=journal_mode%28wal%29&_txlock=immediate",
		"./x.db":            "./x.db?_error_rc=1&_pragma=busy_timeout%285000%29&_pragma=journal_mode%28wal%29&_txlock=immediate",
		"file:x.db?mode=ro": "file:x.db?_error_rc=1&_pragma=busy_timeout%285000%29&_txlock=immediate&mode=ro",
		":memory:":          ":memory:?_error_rc=1&_pragma=busy_timeout%285000%29&_txlock=immediate",
		"x.db?_journal=DELETE&_busy_timeout=7&_txlock=deferred":     "x.db?_busy_timeout=7&_error_rc=1&_journal=DELETE&_txlock=deferred",
		"x.db?_pragma=journal_mode(delete)&_pragma=busy_timeout(7)": "x.db?_error_rc=1&_pragma=journal_mode%28delete%29&_pragma=busy_timeout%287%29&_txlock=immediate",
	} {
		e, err := newSqlite(dsn)
		require.NoError(t, err)
		require.Equal(t, want, e.(*sqliteEngine).dsn)
	}
	t.Setenv("PGSSLMODE", "")
	for dsn, want := range map[string]string{
		"postgres://u:p@h/d":                   "postgres://u:p@h/d?sslmode=require",
		"postgres://u:p@h/d?connect_timeout=1": "postgres://u:p@h/d?connect_timeout=1&sslmode=require",
		"postgres://h/d?sslmode=disable":       "postgres://h/d?sslmode=disable",
		"host=h user=u":                        "host=h user=u sslmode=require",
		"host=h sslmode=prefer":                "host=h sslmode=prefer",
		"service=there":                        "service=there",
	} {
		require.Equal(t, want, encrypted(dsn))
	}
	t.Setenv("PGSSLMODE", "disable")
	require.Equal(t, "host=h", encrypted("host=h"))
}
