//go:build servers

package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/postgres"
)

// server is shared by the tests, each of which has a schema of its own.
var server *postgres.Server

// TestServers is the one test that has a server: the others are its parts, so that
// the server ends with them.
func TestServers(t *testing.T) {
	var err error
	server, err = postgres.Start()
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Wipe()) }()
	for name, part := range map[string]func(*testing.T){
		"values":          valuesInPostgres,
		"what is wrong":   whatPostgresSays,
		"transaction":     batchIsOneTransactionInPostgres,
		"refused":         refusedRowsInPostgres,
		"revisions":       revisionsInPostgres,
		"changed table":   changedTable,
		"without prepare": withoutPreparedStatements,
		"password":        wrongPassword,
		"restart":         restartedServer,
		"deferred":        deferredConstraint,
		"backends":        endedBackend,
		"stop":            stoppedMeanwhile,
		"standby":         serverWithoutWrites,
	} {
		t.Run(name, part)
	}
}

// newSchema is a reader with a schema of its own in the server.
func newSchema(t testing.TB, statements ...string) *database {
	t.Helper()
	name := fmt.Sprintf("s%d", rand.Uint64())
	conf, err := pgx.ParseConfig(server.DSN)
	require.NoError(t, err)
	conf.RuntimeParams["search_path"] = name
	conf.RuntimeParams["timezone"] = "UTC"
	read := stdlib.OpenDB(*conf)
	t.Cleanup(func() { require.NoError(t, read.Close()) })
	d := &database{t, server.DSN + "&search_path=" + name, read}
	d.exec("CREATE SCHEMA " + name)
	for _, s := range statements {
		d.exec(s)
	}
	return d
}

// postgres is a connected output. DSN stands for the server.
func (d *database) postgres(name, conf string) *writer {
	d.Helper()
	if !strings.Contains(conf, "dsn:") {
		conf += "\ndsn: DSN\n"
	}
	w, err := construct(name, strings.ReplaceAll("driver: postgres\n"+conf, "DSN", d.path))
	require.NoError(d, err)
	require.NoError(d, w.Connect(d.Context()))
	d.Cleanup(func() { require.NoError(d, w.Close(context.Background())) })
	return w
}

func valuesInPostgres(t *testing.T) {
	for _, c := range []struct{ kind, payload, want string }{
		{"bigint", "null", "<nil>"},
		{"bigint", "9223372036854775807", "9223372036854775807"},
		{"bigint", "-9223372036854775808", "-9223372036854775808"},
		{"bigint", "9007199254740993", "9007199254740993"},
		{"int", "1.0", "1"},
		{"smallint", "1e3", "1000"},
		{"numeric", "123456789012345678901234567890.123456789", "123456789012345678901234567890.123456789"},
		{"numeric", "1.50", "1.50"},
		{"numeric", "1e20", "100000000000000000000"},
		{"double precision", "0.1", "0.1"},
		{"real", "0.5", "0.5"},
		{"text", "5", "5"},
		{"text", "true", "true"},
		{"boolean", "true", "true"},
		{"boolean", `"no"`, "false"},
		{"text", `"h\u00e9 \ud83d\ude00"`, "hé 😀"},
		{"text", `""`, ""},
		{"varchar(3)", `"abc"`, "abc"},
		{"timestamptz", `"2026-03-02T09:00:00.123456+01:00"`, "2026-03-02 08:00:00.123456+00"},
		{"timestamp", `"2026-03-02T09:00:00Z"`, "2026-03-02 09:00:00"},
		{"date", `"2026-03-02"`, "2026-03-02"},
		{"uuid", `"0e37df36-f698-11e6-8dd4-cb9ced3df976"`, "0e37df36-f698-11e6-8dd4-cb9ced3df976"},
		{"interval", `"5 minutes"`, "00:05:00"},
		{"inet", `"10.0.0.1"`, "10.0.0.1/32"},
		{"jsonb", `{"b":[1,2.50,12345678901234567890],"a":null}`, `{"a": null, "b": [1, 2.50, 12345678901234567890]}`},
		{"json", `{"a":1}`, `{"a":1}`},
		{"jsonb", `[1,{"x":"y"}]`, `[1, {"x": "y"}]`},
		{"jsonb", `"\"text\""`, `"text"`},
		{"jsonb", "5", "5"},
		{"text", `[1,"x"]`, `[1,"x"]`},
		{"int[]", "[1,null,3]", "{1,NULL,3}"},
		{"int[]", "[]", "{}"},
		{"bigint[]", "[[1,2],[3,4]]", "{{1,2},{3,4}}"},
		{"text[]", `["a","b c","","NULL","q\"\\"]`, `{a,"b c","","NULL","q\"\\"}`},
		{"timestamptz[]", `["2026-03-02T09:00:00Z"]`, `{"2026-03-02 09:00:00+00"}`},
		{"jsonb[]", `[{"a":1},[2]]`, `{"{\"a\": 1}",[2]}`},
	} {
		t.Run(c.kind+" "+c.payload, func(t *testing.T) {
			d := newSchema(t, "CREATE TABLE t (v "+c.kind+")")
			w := d.postgres(nameInsert, "table: t\ncolumns: [ v ]\nargs_mapping: root = [ this ]")
			require.NoError(t, w.WriteBatch(t.Context(), batchOf(c.payload)))
			require.Equal(t, []string{c.want}, d.rows("SELECT v::text FROM t"))
		})
	}
	d := newSchema(t, "CREATE TABLE t (at timestamptz, raw bytea, n int)")
	w := d.postgres(nameInsert, "table: t\ncolumns: [ at, raw, n ]\nargs_mapping: |\n  root = [ this.ts_parse(\"2006-01-02T15:04:05Z07:00\"), content(), @n ]")
	batch := batchOf(`"2026-03-02T09:00:00+01:00"`)
	batch[0].MetaSetMut("n", 7)
	require.NoError(t, w.WriteBatch(t.Context(), batch))
	require.Equal(t, []string{`2026-03-02 08:00:00|"2026-03-02T09:00:00+01:00"|7`}, d.rows("SELECT (at AT TIME ZONE 'UTC')::text, convert_from(raw, 'UTF8'), n FROM t"))
}

func whatPostgresSays(t *testing.T) {
	const table = "CREATE TABLE t (k text, n int NOT NULL CHECK (n > 0), s varchar(3), b boolean)"
	insert := "table: t\ncolumns: [ k, n, s, b ]\nargs_mapping: root = [ this.k, this.n, this.s, this.b ]\n"
	for _, c := range []struct {
		about, output, conf, payload string
		parts                        []string
	}{
		{"no unique key", nameInsert, insert + "suffix: ON CONFLICT (k) DO NOTHING", `{"k":"a","n":1}`, []string{`table "t"`, `suffix "ON CONFLICT (k) DO NOTHING"`, "42P10", "CREATE UNIQUE INDEX t_key ON t (k)"}},
		{"no table", nameInsert, strings.Replace(insert, "table: t", "table: missing", 1), `{"k":"a","n":1}`, []string{`table "missing"`, "42P01", "create the table first"}},
		{"no column", nameInsert, "table: t\ncolumns: [ k, m ]\nargs_mapping: root = [ this.k, this.n ]", `{"k":"a","n":1}`, []string{"columns k, m", `column "m"`, "42703", "name the columns of the table"}},
		{"a text for a number", nameInsert, insert, `{"k":"a","n":"abc"}`, []string{`column n, value "abc"`, "22P02", "args_mapping"}},
		{"a fraction for an integer", nameInsert, insert, `{"k":"a","n":1.5}`, []string{"column n, value 1.5", "22P02"}},
		{"a number out of range", nameInsert, insert, `{"k":"a","n":3000000000}`, []string{"column n, value 3000000000", "22003", "BIGINT"}},
		{"an object for a number", nameInsert, insert, `{"k":"a","n":{"a":1}}`, []string{`column n, value {"a":1}`, "22P02"}},
		{"a null", nameInsert, insert, `{"k":"a"}`, []string{"column n, value null", "23502", "default"}},
		{"a long text", nameInsert, insert, `{"k":"a","n":1,"s":"abcd"}`, []string{"22001", "too long"}},
		{"a zero byte", nameInsert, insert, `{"k":"a\u0000","n":1}`, []string{"22021", "zero bytes"}},
		{"a rule", nameInsert, insert, `{"k":"a","n":-1}`, []string{"t_n_check", "23514", "breaks a rule"}},
		{"bad SQL", nameRaw, "query: INSERT INTO", `{}`, []string{`query "INSERT INTO"`, "42601", "put the SQL right"}},
		{"placeholders of MySQL", nameRaw, "query: INSERT INTO t (k, n) VALUES (?, ?)\nargs_mapping: root = [ 1, 2 ]", `{}`, []string{"42601", "$1, $2 and so on, not ?"}},
		{"a query that is not dynamic", nameRaw, "query: INSERT INTO t (n) VALUES (${! this.n })", `{"n":1}`, []string{"42601", "unsafe_dynamic_query: true"}},
		{"two statements", nameRaw, "query: SELECT 1; SELECT 2", `{}`, []string{"42601", "queries"}},
		{"too few values", nameRaw, "query: INSERT INTO t (k, n) VALUES ($1, $2)\nargs_mapping: root = [ 1 ]", `{}`, []string{"1 values for 2 placeholders"}},
		{"not in a transaction", nameRaw, "query: VACUUM", `{}`, []string{"25001", "one transaction"}},
	} {
		t.Run(c.about, func(t *testing.T) {
			w := newSchema(t, table).postgres(c.output, c.conf)
			err := w.WriteBatch(t.Context(), batchOf(c.payload))
			require.Error(t, err)
			for _, part := range c.parts {
				require.ErrorContains(t, err, part)
			}
			require.NotErrorIs(t, err, service.ErrNotConnected)
			require.LessOrEqual(t, strings.Count(err.Error(), "SQLSTATE"), 1, err)
		})
	}
}

func batchIsOneTransactionInPostgres(t *testing.T) {
	d := newSchema(t, "CREATE TABLE t (v int)", "CREATE FUNCTION part(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN IF $1 = 3 THEN RAISE EXCEPTION USING ERRCODE = ''53400'', MESSAGE = ''lights out''; END IF; RETURN $1; END'")
	w := d.postgres(nameRaw, "query: INSERT INTO t VALUES (part($1))\nargs_mapping: root = [ this ]")
	err := w.WriteBatch(t.Context(), batchOf("1", "2", "3", "4"))
	require.ErrorContains(t, err, "lights out")
	require.Empty(t, d.rows("SELECT v FROM t"), "a failure in the middle leaves nothing")
	require.NoError(t, w.WriteBatch(t.Context(), batchOf("1", "2", "4", "4")), "the connection is still good")
	require.Equal(t, []string{"1"}, d.rows("SELECT count(DISTINCT xmin::text) FROM t"), "one transaction")
}

func refusedRowsInPostgres(t *testing.T) {
	d := newSchema(t, "CREATE TABLE t (k text PRIMARY KEY, n int CHECK (n >= 0))", "CREATE TABLE log (k text)")
	w := d.postgres(nameRaw, `
query: INSERT INTO log VALUES ($1)
args_mapping: root = [ this.k ]
queries:
  - query: INSERT INTO t VALUES ($1, $2)
    args_mapping: root = [ this.k, this.n ]
`)
	batch := batchOf(`{"k":"a","n":1}`, `{"k":"b","n":-1}`, `{"k":"c","n":3}`, `{`, `{"k":"a","n":1}`, `{"k":"d","n":"x"}`, `{"k":"e","n":[]}`, `{"k":"f","n":6}`)
	named := namedBy(t, batch, batch.Index(), w.WriteBatch(t.Context(), batch))
	require.Len(t, named, 5)
	for i, part := range map[int]string{1: "t_n_check", 3: "args_mapping", 4: "Key (k)=(a) already exists", 5: `value 2, "x"`, 6: "value 2, []"} {
		require.Contains(t, named[i], part)
	}
	require.Equal(t, []string{"a|1", "c|3", "f|6"}, d.rows("SELECT * FROM t ORDER BY k"))
	require.Equal(t, []string{"a", "c", "f"}, d.rows("SELECT * FROM log ORDER BY k"), "the queries of a message are one")
}

// Batches in parallel that touch the same keys in different orders meet in
// deadlocks, which end by themselves.
func revisionsInPostgres(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	d := newSchema(t, "CREATE TABLE t (k text PRIMARY KEY, revision bigint NOT NULL, v int CHECK (v >= 0), deleted boolean NOT NULL)")
	w := d.postgres(nameInsert, `
table: t
columns: [ k, revision, v, deleted ]
args_mapping: root = [ this.k, this.r, this.v, this.v == null ]
suffix: ON CONFLICT (k) DO UPDATE SET revision = excluded.revision, v = excluded.v, deleted = excluded.deleted WHERE excluded.revision > t.revision
`)
	var all service.MessageBatch
	var want []string
	for k := range 10 {
		last := 1 + rnd.IntN(60)
		for r := 1; r <= last; r++ {
			text := []string{"null", "1", "2", "3"}[rnd.IntN(4)]
			all = append(all, batchOf(fmt.Sprintf(`{"k":"k%d","r":%d,"v":%s}`, k, r, text))...)
			if r == last && text != "null" {
				want = append(want, fmt.Sprintf("k%d|%d|%s", k, r, text))
			}
		}
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var writers sync.WaitGroup
	for len(all) > 0 {
		n := min(1+rnd.IntN(20), len(all))
		batch := all[:n]
		all = all[n:]
		writers.Go(func() {
			for { // as Benthos does with what was not written
				err := w.WriteBatch(context.Background(), batch)
				if err == nil {
					return
				}
				if w.engine.judge(err) != ofOthers {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	require.Equal(t, want, d.rows("SELECT k, revision, v FROM t WHERE NOT deleted ORDER BY k"))
}

// Behind a pooler that knows no prepared statements.
func withoutPreparedStatements(t *testing.T) {
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe", "describe_exec"} {
		d := newSchema(t, "CREATE TABLE t (k text PRIMARY KEY, n numeric, j jsonb, at timestamptz, b boolean, i int)")
		w := d.postgres(nameInsert, "dsn: DSN&default_query_exec_mode="+mode+`
table: t
columns: [ k, n, j, at, b, i ]
args_mapping: root = [ this.k, this.n, this.j, this.at, this.b, this.i ]
`)
		batch := batchOf(`{"k":"a","n":1.50,"j":{"x":[1]},"at":"2026-03-02T09:00:00Z","b":true,"i":1}`, `{"k":"a","i":1}`, `{"k":"b'","n":12345678901234567890,"j":[],"b":null,"i":null}`)
		named := namedBy(t, batch, batch.Index(), w.WriteBatch(t.Context(), batch))
		require.Len(t, named, 1, mode)
		require.Contains(t, named[1], "23505", mode)
		require.Equal(t, []string{`a|1.50|{"x": [1]}|true|1`, `b'|12345678901234567890|[]|<nil>|<nil>`}, d.rows("SELECT k, n::text, j::text, b, i FROM t ORDER BY k"), mode)
	}
}

func wrongPassword(t *testing.T) {
	d := newSchema(t)
	d.exec("CREATE ROLE guarded LOGIN PASSWORD 'right'")
	for _, c := range []struct {
		from, to string
		parts    []string
	}{
		{"tester@", "guarded:wrong@", []string{`user "guarded"`, "28P01", "put the password in the dsn right"}},
		{"tester@", "nobody_here@", []string{`user "nobody_here"`, "28000", "pg_hba.conf"}},
		{"/postgres?", "/missing?", []string{`database "missing"`, "3D000", "create the database"}},
		{"sslmode=disable", "sslmode=require", []string{"server refused TLS", "sslmode=disable"}},
	} {
		w, err := construct(nameRaw, "driver: postgres\ndsn: "+strings.Replace(server.DSN, c.from, c.to, 1)+"\nquery: SELECT 1\ninit_verify_conn: true\n")
		require.NoError(t, err)
		err = w.Connect(t.Context())
		for _, part := range c.parts {
			require.ErrorContains(t, err, part)
		}
		require.NotContains(t, err.Error(), "wrong")
		require.NoError(t, w.Close(context.Background()))
	}
}

// A server that comes back is written to again; a message is not lost meanwhile.
func restartedServer(t *testing.T) {
	d := newSchema(t, "CREATE TABLE t (v int PRIMARY KEY)")
	w := d.postgres(nameInsert, "table: t\ncolumns: [ v ]\nargs_mapping: root = [ this ]")
	require.NoError(t, w.WriteBatch(t.Context(), batchOf("1")))
	require.NoError(t, server.Crash())
	for range 3 {
		require.ErrorIs(t, w.WriteBatch(t.Context(), batchOf("2")), service.ErrNotConnected)
		require.ErrorContains(t, w.Connect(t.Context()), "is the server up")
	}
	require.NoError(t, server.Resume())
	require.NoError(t, w.Connect(t.Context()))
	require.NoError(t, w.WriteBatch(t.Context(), batchOf("2")))
	found, err := stdsql.Open("pgx", d.path)
	require.NoError(t, err)
	defer found.Close()
	again := &database{t, d.path, found}
	require.Equal(t, []string{"1", "2"}, again.rows("SELECT v FROM t ORDER BY v"))
}

// An administrator ends the session in the middle of a batch.
func endedBackend(t *testing.T) {
	d := newSchema(t, "CREATE TABLE t (v int PRIMARY KEY)")
	w := d.postgres(nameRaw, "query: INSERT INTO t SELECT $1::int WHERE $1 <> 2 OR pg_terminate_backend(pg_backend_pid())\nargs_mapping: root = [ this ]")
	require.ErrorIs(t, w.WriteBatch(t.Context(), batchOf("1", "2", "3")), service.ErrNotConnected)
	require.NoError(t, w.Connect(t.Context()))
	require.Empty(t, d.rows("SELECT v FROM t"))
	require.NoError(t, w.WriteBatch(t.Context(), batchOf("1", "3")))
}

// A server that answers and takes no writes is tried again, with pauses, on new
// connections.
func serverWithoutWrites(t *testing.T) {
	d := newSchema(t, "CREATE TABLE t (v int)")
	w := d.postgres(nameInsert, "table: t\ncolumns: [ v ]\nargs_mapping: root = [ this ]")
	require.NoError(t, w.WriteBatch(t.Context(), batchOf("1")))
	d.exec("ALTER ROLE tester SET default_transaction_read_only = on")
	require.NoError(t, w.db.Close())
	w.db = nil
	for range 3 {
		require.NoError(t, w.Connect(t.Context()))
		require.ErrorIs(t, w.WriteBatch(t.Context(), batchOf("2")), service.ErrNotConnected)
	}
	require.Equal(t, 3, w.faults)
	d.exec("ALTER ROLE tester RESET default_transaction_read_only")
	require.NoError(t, w.Connect(t.Context()))
	require.NoError(t, w.WriteBatch(t.Context(), batchOf("2")))
	require.Equal(t, []string{"1", "2"}, d.rows("SELECT v FROM t"))
}

// A stop does not wait for a statement that hangs, and leaves nothing of it.
func stoppedMeanwhile(t *testing.T) {
	d := newSchema(t, "CREATE TABLE t (v int)")
	w := d.postgres(nameRaw, `
query: INSERT INTO t VALUES ($1)
args_mapping: root = [ this ]
queries: [ { query: SELECT pg_sleep(600 * $1::int), args_mapping: "root = [ this ]" } ]
`)
	require.NoError(t, w.WriteBatch(t.Context(), batchOf("0")))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.WriteBatch(ctx, batchOf("1")) }()
	require.Eventually(t, func() bool {
		return d.rows("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND state = 'active' AND pid <> pg_backend_pid()")[0] != "0"
	}, 20*time.Second, 10*time.Millisecond)
	stop()
	require.ErrorIs(t, <-done, context.Canceled)
	require.NoError(t, w.WriteBatch(t.Context(), batchOf("0")))
	require.Equal(t, []string{"0", "0"}, d.rows("SELECT v FROM t"))
}

// BenchmarkPostgres is the cost of a row, upserted in batches; with a message that is
// refused the batch is written a second time, with savepoints.
func BenchmarkPostgres(b *testing.B) {
	var err error
	server, err = postgres.Start()
	require.NoError(b, err)
	defer func() { require.NoError(b, server.Wipe()) }()
	for _, refuse := range []bool{false, true} {
		for _, size := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("batch=%d/refused=%v", size, refuse), func(b *testing.B) {
				d := newSchema(b, "CREATE TABLE t (k text PRIMARY KEY, revision bigint NOT NULL, v int CHECK (v >= 0))")
				w := d.postgres(nameInsert, intoT+newerWin)
				batch := make(service.MessageBatch, size)
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					for i := range batch {
						v := n
						if refuse && i == size/2 {
							v = -1
						}
						batch[i] = service.NewMessage(fmt.Appendf(nil, `{"k":"k%d","r":%d,"v":%d}`, i, n, v))
					}
					require.Equal(b, refuse, w.WriteBatch(context.Background(), batch) != nil)
				}
				b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}
