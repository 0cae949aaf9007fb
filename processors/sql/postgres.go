package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/connect-windowed/connect-windowed/processors/internal/socket"
)

// postgresEngine writes to a server of PostgreSQL.
type postgresEngine struct {
	conf *pgx.ConnConfig
}

func newPostgres(dsn string) (engine, error) {
	if strings.TrimSpace(dsn) == "" {
		return nil, fmt.Errorf("%s: must not be empty: give the server, such as postgres://user:password@host:5432/database", fieldDSN)
	}
	conf, err := pgx.ParseConfig(encrypted(dsn))
	// A URL of another scheme would be taken for the name of a parameter, which the
	// server repeats in its error with the password in it.
	if scheme, _, ok := strings.Cut(dsn, "://"); err != nil || ok && !strings.Contains(scheme, "=") && scheme != "postgres" && scheme != "postgresql" {
		// The reason would show the text, with its password.
		return nil, fmt.Errorf("%s: is not understood: PostgreSQL wants postgres://user:password@host:5432/database?sslmode=disable, or host=localhost user=shop dbname=shop", fieldDSN)
	}
	if conf.ConnectTimeout == 0 {
		conf.ConnectTimeout = connectTimeout
	}
	dial := net.Dialer{
		Timeout: conf.ConnectTimeout, Control: socket.UserTimeout(silence),
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 4, Interval: silence / 8, Count: 6},
	}
	conf.DialFunc = dial.DialContext
	return &postgresEngine{conf: conf}, nil
}

// silence is how long a server may say nothing, not even that it is there, before
// the connection counts as lost.
const silence = time.Minute

// encrypted asks for an encrypted connection where nothing else is said.
func encrypted(dsn string) string {
	if strings.Contains(dsn, "sslmode") || strings.Contains(dsn, "service") || os.Getenv("PGSSLMODE") != "" {
		return dsn
	}
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return dsn + " sslmode=require"
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	q := u.Query()
	q.Set("sslmode", "require")
	u.RawQuery = q.Encode()
	return u.String()
}

// open implements engine.
func (e *postgresEngine) open() (*sql.DB, error) { return stdlib.OpenDB(*e.conf), nil }

// write implements engine.
func (e *postgresEngine) write(ctx context.Context, conn *sql.Conn, calls []call, each bool) (refused []refusal, err error) {
	err = conn.Raw(func(driver any) error {
		run := &postgresRun{postgresEngine: e, conn: driver.(*stdlib.Conn).Conn(), oids: map[*statement][]uint32{}}
		refused, err = run.transaction(ctx, calls, each)
		if err == nil && len(refused) == 0 {
			return nil
		}
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		switch {
		case err != nil && e.judge(err) == ofConnection:
			// A server that has become a standby keeps its connections.
			_ = run.conn.Close(after)
		case e.prepares() && !run.conn.IsClosed():
			// The types of the placeholders are those that the columns had when
			// the statement was prepared. Somebody may put the columns right.
			_ = run.conn.DeallocateAll(after)
		}
		return err
	})
	return refused, err
}

// postgresRun is a transaction under way.
type postgresRun struct {
	*postgresEngine
	conn *pgx.Conn
	tx   pgx.Tx
	oids map[*statement][]uint32 // the types of the placeholders, where they are known
}

func (r *postgresRun) transaction(ctx context.Context, calls []call, each bool) (refused []refusal, err error) {
	if r.conn.IsClosed() {
		return nil, errClosed
	}
	if err := r.prepare(ctx, calls); err != nil {
		return nil, err
	}
	if r.tx, err = r.conn.Begin(ctx); err != nil {
		return nil, r.lost(r.explain(err, nil))
	}
	defer func() {
		if err != nil || len(refused) > 0 {
			_ = r.tx.Rollback(context.WithoutCancel(ctx)) // nothing after a commit
		}
	}()
	if each {
		refused, err = r.oneByOne(ctx, calls)
	} else {
		refused, err = r.together(ctx, calls)
	}
	if err != nil || !each && len(refused) > 0 {
		return refused, err
	}
	if err := r.tx.Commit(ctx); err != nil {
		return nil, r.lost(r.explain(err, nil))
	}
	return refused, nil
}

// prepares reports that the DSN wants prepared statements.
func (e *postgresEngine) prepares() bool {
	mode := e.conf.DefaultQueryExecMode
	return mode != pgx.QueryExecModeExec && mode != pgx.QueryExecModeSimpleProtocol
}

// prepare asks the server for the types of the placeholders, once for a connection.
// A DSN that wants no prepared statements gets none: values are sent as text then.
func (r *postgresRun) prepare(ctx context.Context, calls []call) error {
	if !r.prepares() {
		return nil
	}
	name := func(text string) string { return text }
	if r.conf.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		name = func(string) string { return "" }
	}
	for _, s := range distinct(calls) {
		description, err := r.conn.Prepare(ctx, name(s.text), s.text)
		if err != nil {
			return r.lost(r.explain(err, &call{stmt: s}))
		}
		r.oids[s] = description.ParamOIDs
	}
	return nil
}

// together sends all calls at once. The first refusal ends the transaction.
func (r *postgresRun) together(ctx context.Context, calls []call) ([]refusal, error) {
	batch := &pgx.Batch{}
	for i := range calls {
		args, err := r.values(&calls[i])
		if err != nil {
			return []refusal{{calls[i].row, err}}, nil
		}
		batch.Queue(calls[i].stmt.text, args...)
	}
	results := r.tx.SendBatch(ctx, batch)
	for i := range calls {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // says the same
			return r.refused(&calls[i], err)
		}
	}
	return nil, r.closed(results)
}

// oneByOne has a savepoint for each message, and goes on after a refusal.
func (r *postgresRun) oneByOne(ctx context.Context, calls []call) (all []refusal, err error) {
	for _, message := range rows(calls) {
		refused, err := r.message(ctx, message)
		if err != nil {
			return nil, err
		}
		if len(refused) > 0 {
			all = append(all, refused...)
			if _, err := r.tx.Exec(ctx, "ROLLBACK TO SAVEPOINT message"); err != nil {
				return nil, r.lost(r.explain(err, nil))
			}
		}
	}
	return all, nil
}

func (r *postgresRun) message(ctx context.Context, calls []call) ([]refusal, error) {
	batch := &pgx.Batch{}
	batch.Queue("SAVEPOINT message")
	var invalid []refusal
	for i := range calls {
		args, err := r.values(&calls[i])
		if err != nil {
			invalid = []refusal{{calls[i].row, err}}
			break
		}
		batch.Queue(calls[i].stmt.text, args...)
	}
	if invalid == nil {
		batch.Queue("RELEASE SAVEPOINT message")
	}
	results := r.tx.SendBatch(ctx, batch)
	for i := range batch.Len() {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // says the same
			return r.refused(&calls[min(max(i-1, 0), len(calls)-1)], err)
		}
	}
	return invalid, r.closed(results)
}

// refused sorts the error of a call into that of its message and that of all.
func (r *postgresRun) refused(c *call, err error) ([]refusal, error) {
	kind := r.judge(err)
	if kind == ofStatement && !c.stmt.fixed && !r.conn.IsClosed() {
		kind = ofRow // a text of its own
	}
	err = r.explain(err, c)
	if kind == ofRow {
		return []refusal{{c.row, err}}, nil
	}
	return nil, r.lost(err)
}

// closed ends what was sent together.
func (r *postgresRun) closed(results pgx.BatchResults) error {
	if err := results.Close(); err != nil {
		return r.lost(r.explain(err, nil))
	}
	return nil
}

// lost marks an error after which the connection is gone, whatever it says.
func (r *postgresRun) lost(err error) error {
	if err != nil && r.conn.IsClosed() {
		return marked{err, errClosed}
	}
	return err
}

// kinds are the kinds of SQLSTATE classes and codes: the longest counts.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
var kinds = map[string]kind{
	"22": ofRow, "23": ofRow, "44": ofRow, "P0001": ofRow, "54000": ofRow,
	"08": ofConnection, "28": ofConnection, "3D": ofConnection, "57P": ofConnection, "53300": ofConnection, "25006": ofConnection,
	"40": ofOthers, "55P03": ofOthers,
}

// judge implements engine.
func (e *postgresEngine) judge(err error) kind {
	var pe *pgconn.PgError
	var connecting *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.Is(err, errOfRow):
		return ofRow
	case errors.Is(err, errClosed) || errors.As(err, &connecting):
		return ofConnection
	case errors.As(err, &pe):
		for n := len(pe.Code); n > 0; n-- {
			if k, ok := kinds[pe.Code[:n]]; ok {
				return k
			}
		}
	case errors.As(err, &network):
		return ofConnection
	}
	return ofStatement
}

var postgresRemedies = remedies{
	"22":    "give a value of the column's type in args_mapping",
	"22007": "a time must be text such as 2026-03-02T09:00:00Z: this.ts.ts_format() makes it of seconds since 1970",
	"22008": "a time must be text such as 2026-03-02T09:00:00Z: this.ts.ts_format() makes it of seconds since 1970",
	"22001": "the text is too long for its column: widen the column, or cut it in args_mapping",
	"22003": "the number does not fit its column: use BIGINT or NUMERIC",
	"22021": "text must be UTF-8 without zero bytes: write bytes into a bytea column, or clean the text in args_mapping",
	"22P05": "text must be UTF-8 without zero bytes: clean the text in args_mapping",
	"23502": "give a value for the column in args_mapping, or let the table have a default",
	"23503": "the row refers to one that is not there",
	"23505": "say what to do with a row that is there already: ON CONFLICT (...) DO UPDATE or DO NOTHING",
	"23514": "the row breaks a rule of the table: leave such rows out, or change the rule",
	"25001": "a batch is one transaction, in which this cannot be executed",
	"25006": "the server is a standby or does not take writes: name the primary in the dsn (target_session_attrs=read-write finds it among several hosts)",
	"28000": "the server does not let this user in from here: see its pg_hba.conf, and sslmode in the dsn",
	"28P01": "put the password in the dsn right",
	"3D000": "create the database, or name another in the dsn",
	"3F000": "create the schema, or name another",
	"40":    "another transaction is in the way; the batch is tried again. Batches that upsert the same keys do not meet with max_in_flight: 1",
	"42501": "let the user of the dsn do it: GRANT INSERT, UPDATE, SELECT ON the table",
	"42601": "put the SQL right; several statements belong into entries of their own in queries",
	"42703": "name the columns of the table, or add this one to it",
	"42804": "cast the placeholder, as in $1::jsonb, or change the type of the column",
	"42P01": "create the table first, with init_statement for example",
	"21000": "one statement must not upsert a key twice: let it have one row",
	"53100": "make room on the disk of the server; the batch is tried again",
	"53300": "the server has no connection left: lower max_in_flight or conn_max_open, or raise its max_connections",
	"57014": "raise statement_timeout",
	"57P":   "the server stops or starts: it is tried again",
}

// noKey: no unique or exclusion constraint matches the columns of ON CONFLICT.
const noKey = "42P10"

const syntaxError = "42601"

var postgresArgument = regexp.MustCompile(`parameter \$(\d+)`)

// explain implements engine.
func (e *postgresEngine) explain(err error, c *call) error {
	what := []string{fmt.Sprintf("%s: server %s", fieldDSN, e.server())}
	if c != nil {
		what = []string{c.stmt.fields}
	}
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return explained(err, what, e.unreachable(err))
	}
	if c != nil {
		if m := postgresArgument.FindStringSubmatch(pe.Where); m != nil {
			n, _ := strconv.Atoi(m[1])
			what = append(what, c.argument(n-1))
		} else if pe.ColumnName != "" {
			what = append(what, c.argument(c.column(pe.ColumnName)))
		}
		what = append(what, pe.Detail)
	}
	remedy := postgresRemedies.of(pe.Code)
	switch {
	case c == nil:
	case pe.Code == noKey:
		remedy = c.needsKey()
	case pe.Code != syntaxError:
	case strings.Contains(c.stmt.text, interpolation):
		remedy = notDynamic
	case strings.Contains(c.stmt.text, "?"):
		remedy = "placeholders of PostgreSQL are $1, $2 and so on, not ?"
	}
	return explained(err, what, remedy)
}

// server is where the database is, without the password.
func (e *postgresEngine) server() string {
	return fmt.Sprintf("%s, user %q, database %q", net.JoinHostPort(e.conf.Host, strconv.Itoa(int(e.conf.Port))), e.conf.User, e.conf.Database)
}

// unreachable says what to do where no server answered.
func (e *postgresEngine) unreachable(err error) string {
	var connecting *pgconn.ConnectError
	switch {
	case strings.Contains(err.Error(), "server refused TLS"):
		return "the server does not encrypt: say sslmode=disable in the dsn, or let it"
	case errors.As(err, &connecting):
		return "is the server up, and are host and port of the dsn right? It is tried again"
	}
	return ""
}
