package sql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
)

// sqliteEngine writes to a file of SQLite.
type sqliteEngine struct {
	dsn  string // with our defaults
	path string // "" in memory

	mu   sync.Mutex  // protects file
	file os.FileInfo // which file is written to, nil before the first write
}

// errVanished: what is written to a file that was removed is gone with its last
// connection, and SQLite says nothing.
var errVanished = errors.New("the file was removed or replaced while it was open")

// vanished tells whether the connections lead to a file that is no longer there.
func (e *sqliteEngine) vanished() error {
	if e.path == "" {
		return nil
	}
	now, err := os.Stat(e.path)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.file == nil {
		e.file = now
		return nil
	}
	if err == nil && os.SameFile(e.file, now) {
		return nil
	}
	e.file = nil
	return marked{explained(errVanished, []string{fmt.Sprintf("%s: file %q", fieldDSN, e.path)}, "a new one is begun where there is none"), errClosed}
}

func newSqlite(dsn string) (engine, error) {
	if strings.TrimSpace(dsn) == "" {
		return nil, fmt.Errorf("%s: must not be empty: name a file, such as file:./state/totals.db", fieldDSN)
	}
	name, query, _ := strings.Cut(dsn, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("%s: what follows the question mark is not a list of parameters: %w", fieldDSN, err)
	}
	if scheme, _, ok := strings.Cut(name, "://"); ok && scheme != "file" {
		return nil, fmt.Errorf("%s: %s:// is not a file: SQLite wants file:./folder/file.db", fieldDSN, scheme)
	}
	e := &sqliteEngine{path: name}
	if uri, ok := strings.CutPrefix(name, "file:"); ok {
		if e.path, err = url.PathUnescape(strings.TrimPrefix(uri, "//")); err != nil {
			return nil, fmt.Errorf("%s: the name of the file is not one of a URI: %w", fieldDSN, err)
		}
	}
	if e.path == ":memory:" || e.path == "" || values.Get("mode") == "memory" {
		e.path = ""
	}
	names := func(pragma string, short ...string) bool {
		for _, p := range values["_pragma"] {
			if strings.HasPrefix(strings.ToLower(strings.TrimSpace(p)), pragma) {
				return true
			}
		}
		for _, key := range short {
			if values.Has(key) {
				return true
			}
		}
		return false
	}
	if !names("busy_timeout", "_busy_timeout", "_timeout") {
		values.Add("_pragma", "busy_timeout(5000)")
	}
	if e.path != "" && values.Get("mode") != "ro" && !names("journal_mode", "_journal_mode", "_journal") {
		values.Add("_pragma", "journal_mode(wal)")
	}
	for key, value := range map[string]string{"_txlock": "immediate", "_error_rc": "1"} {
		if !values.Has(key) {
			values.Set(key, value)
		}
	}
	e.dsn = name + "?" + values.Encode()
	return e, nil
}

// open implements engine.
func (e *sqliteEngine) open() (*sql.DB, error) {
	if folder := filepath.Dir(e.path); e.path != "" && folder != "." {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return nil, fmt.Errorf("%s: the folder of the file cannot be made: %w", fieldDSN, err)
		}
	}
	return sql.Open("sqlite", e.dsn)
}

// write implements engine.
func (e *sqliteEngine) write(ctx context.Context, conn *sql.Conn, calls []call, each bool) (refused []refusal, err error) {
	if err := e.vanished(); err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, e.explain(err, nil)
	}
	defer func() { _ = tx.Rollback() }() // nothing after a commit
	run := sqliteRun{sqliteEngine: e, tx: tx, prepared: map[*statement]*sql.Stmt{}}
	for _, s := range distinct(calls) {
		if run.prepared[s], err = tx.PrepareContext(ctx, s.text); err != nil {
			return nil, e.explain(err, &call{stmt: s})
		}
		defer run.prepared[s].Close()
	}
	for _, message := range rows(calls) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err := run.message(message, each)
		switch {
		case err == nil:
		case e.judge(err) != ofRow:
			return nil, err
		case !each:
			return []refusal{{message[0].row, err}}, nil
		default:
			refused = append(refused, refusal{message[0].row, err})
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, e.explain(err, nil)
	}
	return refused, nil
}

// sqliteRun is a transaction under way.
type sqliteRun struct {
	*sqliteEngine
	tx       *sql.Tx
	prepared map[*statement]*sql.Stmt
}

// message executes the calls of a message: all of them or none with a savepoint.
func (r *sqliteRun) message(calls []call, savepoint bool) error {
	if savepoint {
		if _, err := r.tx.Exec("SAVEPOINT message"); err != nil {
			return fmt.Errorf("savepoint: %w", err)
		}
	}
	for i := range calls {
		if err := r.call(&calls[i]); err != nil {
			if savepoint {
				if _, undo := r.tx.Exec("ROLLBACK TO message"); undo != nil {
					return fmt.Errorf("savepoint: %w", undo)
				}
				if _, undo := r.tx.Exec("RELEASE message"); undo != nil {
					return fmt.Errorf("savepoint: %w", undo)
				}
			}
			return err
		}
	}
	if savepoint {
		_, err := r.tx.Exec("RELEASE message")
		return err
	}
	return nil
}

func (r *sqliteRun) call(c *call) (err error) {
	args := make([]any, len(c.args))
	for i, v := range c.args {
		if args[i], err = sqliteValue(v); err != nil {
			return explained(ofItsRow(err), []string{c.stmt.fields, c.argument(i)}, "")
		}
	}
	// A context that can end costs a goroutine a call. A call is short, and the
	// transaction ends with its context.
	if s := r.prepared[c.stmt]; s != nil {
		_, err = s.Exec(args...)
	} else {
		_, err = r.tx.Exec(c.stmt.text, args...)
	}
	if err == nil {
		return nil
	}
	if !c.stmt.fixed && r.judge(err) == ofStatement {
		err = ofItsRow(err) // a text of its own
	}
	return r.explain(err, c)
}

// sqliteValue is what the driver takes.
func sqliteValue(v any) (any, error) {
	v, err := plain(v)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err == nil && strconv.FormatFloat(f, 'g', -1, 64) == shortest(string(v)) {
			return f, nil
		}
		return string(v), nil
	case time.Time:
		return rfc3339(v), nil
	case map[string]any, []any:
		return asJSON(v)
	}
	return v, nil
}

// shortest is the text of a number as FormatFloat writes it, if a float64 has all
// its digits.
func shortest(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || digits(text) != digits(strconv.FormatFloat(f, 'g', -1, 64)) {
		return ""
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// digits are the significant digits of a number.
func digits(text string) string {
	text, _, _ = strings.Cut(strings.ToLower(text), "e")
	text = strings.TrimLeft(strings.ReplaceAll(strings.TrimLeft(text, "+-"), ".", ""), "0")
	return strings.TrimRight(text, "0")
}

// Result codes of SQLite, https://www.sqlite.org/rescode.html.
const (
	codeError      = 1
	codeBusy       = 5
	codeLocked     = 6
	codeReadonly   = 8
	codeIO         = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeTooBig     = 18
	codeConstraint = 19
	codeMismatch   = 20
	codeNotADB     = 26
)

// judge implements engine.
func (e *sqliteEngine) judge(err error) kind {
	if errors.Is(err, errOfRow) {
		return ofRow
	}
	if errors.Is(err, errClosed) {
		return ofConnection
	}
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return ofStatement
	}
	switch se.Code() & 0xff {
	case codeConstraint, codeMismatch, codeTooBig:
		return ofRow
	case codeCantOpen, codeIO, codeNotADB:
		return ofConnection
	}
	return ofStatement // a lock too: it was waited for
}

var sqliteRemedies = map[int]string{
	codeBusy:     "another process holds the file: end its transaction, or let this one wait longer with ?_pragma=busy_timeout(60000) in the dsn; the batch is tried again",
	codeLocked:   "another connection of this process holds the table: the batch is tried again",
	codeReadonly: "make the file and its folder writable",
	codeIO:       "look at the disk of the file",
	codeCorrupt:  "the file is damaged: put a good one in its place",
	codeFull:     "make room on the disk of the file; the batch is tried again",
	codeCantOpen: "its folder must exist and be writable",
	codeNotADB:   "the dsn names a file that is not a database of SQLite: name another",
	codeMismatch: "give a value of the column's type in args_mapping",
}

// sqliteTexts say what to do about errors that have no code of their own.
var sqliteTexts = []struct{ part, remedy string }{
	{"no such table", "create the table first, with init_statement for example"},
	{"has no column named", "name the columns of the table in columns, or add this one to it"},
	{"no such column", "name the columns of the table, or add this one to it"},
	{"UNIQUE constraint failed", "say what to do with a row that is there already: ON CONFLICT (...) DO UPDATE or DO NOTHING"},
	{"NOT NULL constraint failed", "give a value for the column in args_mapping, or let the table have a default"},
	{"cannot store", "give a value of the column's type in args_mapping"},
	{"CHECK constraint failed", "the row breaks a rule of the table: leave such rows out, or change the rule"},
	{"FOREIGN KEY constraint failed", "the row refers to one that is not there"},
	{"missing argument", "args_mapping must give a value for each placeholder"},
	{"syntax error", "put the SQL right"},
}

var sqliteColumn = regexp.MustCompile(`(?:failed: |column )\w+\.(\w+)`)

// explain implements engine.
func (e *sqliteEngine) explain(err error, c *call) error {
	what := []string{fmt.Sprintf("%s: file %q", fieldDSN, e.path)}
	remedy := ""
	var se *sqlite.Error
	if errors.As(err, &se) {
		remedy = sqliteRemedies[se.Code()&0xff]
	}
	if c != nil {
		what = []string{c.stmt.fields}
		if m := sqliteColumn.FindStringSubmatch(err.Error()); m != nil {
			what = append(what, c.argument(c.column(m[1])))
		}
		if strings.Contains(err.Error(), "ON CONFLICT clause does not match") {
			remedy = c.needsKey()
		}
		if strings.Contains(c.stmt.text, interpolation) {
			return explained(err, what, notDynamic)
		}
		for _, t := range sqliteTexts {
			if strings.Contains(err.Error(), t.part) {
				remedy = t.remedy
				break
			}
		}
	}
	return explained(err, what, remedy)
}
