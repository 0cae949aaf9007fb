package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// statement is something to execute.
type statement struct {
	text string
	// fixed is false for a text that was made for one message: preparing it would
	// fill the memory of the connection.
	fixed   bool
	columns []string // of sql_insert: the names of the arguments
	fields  string   // which fields of the configuration it stands in
	index   string   // what would make the key that an upsert needs, or ""
}

// call is a statement with its arguments, for one message of a batch.
type call struct {
	row  int // the number of the message in its batch
	stmt *statement
	args []any // as Bloblang gave them
}

// refusal is a message that the database does not take, for a reason of its own.
type refusal struct {
	row int
	err error
}

// engine is what differs between databases. The writer calls open once, and the
// others from any number of goroutines.
type engine interface {
	// open gives a pool. It does not connect.
	open() (*sql.DB, error)
	// write executes the calls in one transaction. With each, a message that is
	// refused leaves no trace and the others are committed. Without it, the first
	// refusal undoes everything and is the only one that is given.
	write(ctx context.Context, conn *sql.Conn, calls []call, each bool) ([]refusal, error)
	// judge says what kind of an error the database gave.
	judge(err error) kind
	// explain adds the field, the value and the remedy to an error of a statement,
	// which is nil where the error came before one was sent.
	explain(err error, c *call) error
}

// kind is what has to be done about an error.
type kind int

const (
	ofStatement  kind = iota // every row would fail: the batch does
	ofRow                    // this row only
	ofConnection             // connect again
	ofOthers                 // another transaction is in the way: try again
)

// driver is a word that the field driver may have.
type driver struct {
	open func(dsn string) (engine, error)
	mark func(n int) string // the placeholder of the argument n, from 1
	// connections is how many are open at most where conn_max_open does not say.
	connections int
}

var drivers = map[string]driver{
	"postgres": {open: newPostgres, mark: dollar},
	"pgx":      {open: newPostgres, mark: dollar},
	"sqlite":   {open: newSqlite, mark: question, connections: 1},
}

func dollar(n int) string { return "$" + strconv.Itoa(n) }
func question(int) string { return "?" }

var errNoDriver = errors.New("unknown driver")

func driverOf(name string) (driver, error) {
	d, ok := drivers[name]
	if !ok {
		names := slices.Sorted(maps.Keys(drivers))
		return d, fmt.Errorf("%s: %w %q: must be one of %s (other databases of Redpanda Connect are not part of this binary)",
			fieldDriver, errNoDriver, name, strings.Join(names, ", "))
	}
	return d, nil
}

// marked is an error that says whose fault it is, in the words of the error alone.
type marked struct {
	error
	mark error
}

func (m marked) Unwrap() []error { return []error{m.error, m.mark} }

var (
	errOfRow  = errors.New("the row was refused")
	errClosed = errors.New("the connection is closed")
)

func ofItsRow(err error) error { return marked{err, errOfRow} }

// distinct are the fixed statements of calls, each once.
func distinct(calls []call) (list []*statement) {
	seen := map[*statement]bool{}
	for _, c := range calls {
		if c.stmt.fixed && !seen[c.stmt] {
			seen[c.stmt] = true
			list = append(list, c.stmt)
		}
	}
	return list
}

// rows cuts calls into those of each message.
func rows(calls []call) (cut [][]call) {
	for from := 0; from < len(calls); {
		to := from + 1
		for to < len(calls) && calls[to].row == calls[from].row {
			to++
		}
		cut = append(cut, calls[from:to])
		from = to
	}
	return cut
}
