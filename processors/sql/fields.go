package sql

import (
	"errors"
	"fmt"
	"time"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	fieldDriver   = "driver"
	fieldDSN      = "dsn"
	fieldFiles    = "init_files"
	fieldInit     = "init_statement"
	fieldVerify   = "init_verify_conn"
	fieldIdleTime = "conn_max_idle_time"
	fieldLifeTime = "conn_max_life_time"
	fieldMaxIdle  = "conn_max_idle"
	fieldMaxOpen  = "conn_max_open"
	fieldArgs     = "args_mapping"
	fieldBatching = "batching"
)

// targetFields say which database.
func targetFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringField(fieldDriver).
			Description("The database: `postgres` (`pgx` is the same) or `sqlite`."),
		service.NewStringField(fieldDSN).
			Description("Where it is. PostgreSQL: `postgres://user:password@host:port/database?sslmode=disable`, or what libpq understands; the connection is encrypted unless `sslmode` says otherwise, and `default_query_exec_mode=exec` goes through poolers that know no prepared statements. SQLite: `file:./folder/file.db`, which is created with its folder where it does not exist; it gets `busy_timeout` (5 s), the journal mode `wal` and transactions that lock at their start, unless the DSN says otherwise (`?_pragma=busy_timeout(1000)&_pragma=journal_mode(delete)&_txlock=deferred`).").
			Example("postgres://foouser:foopass@localhost:5432/foodb?sslmode=disable").
			Example("file:./state/totals.db"),
	}
}

// connectionFields say how it is connected to.
func connectionFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringListField(fieldFiles).Optional().Advanced().
			Description("Files with SQL to execute at the first connection, before `init_statement`. Globs are allowed, `**` too. They are executed at every start, so they must bear that.").
			Example([]any{"./init/*.sql"}),
		service.NewStringField(fieldInit).Optional().Advanced().
			Description("SQL to execute at the first connection, once in the life of the process. It is executed at every start, so it must bear that. If it fails, a warning is logged and the output goes on; if the database cannot be reached, it is tried again.").
			Example("CREATE TABLE IF NOT EXISTS totals (\n  row_key TEXT PRIMARY KEY,\n  revision BIGINT NOT NULL,\n  total NUMERIC\n);"),
		service.NewBoolField(fieldVerify).Default(false).Advanced().
			Description("Whether the database has to answer before the output counts as connected. Otherwise it is first spoken to for an init statement or a message."),
		service.NewStringField(fieldIdleTime).Optional().Advanced().
			Description("How long a connection may be idle. For ever by default, and with 0 or less."),
		service.NewStringField(fieldLifeTime).Optional().Advanced().
			Description("How long a connection may be used. For ever by default, and with 0 or less."),
		service.NewIntField(fieldMaxIdle).Default(2).Advanced().
			Description("How many idle connections are kept. None with 0 or less."),
		service.NewIntField(fieldMaxOpen).Optional().Advanced().
			Description("How many connections may be open. Without a limit by default (`max_in_flight` is one), and with 0 or less. For SQLite the default is 1: it has one writer at a time."),
		service.NewBatchPolicyField(fieldBatching),
		service.NewOutputMaxInFlightField().Default(64).
			Description("How many batches may be written at the same time, each on a connection of its own. With more than 1 they may overtake each other: let an upsert keep the higher revision, or set 1."),
	}
}

// settings are the parsed fields that every output has.
type settings struct {
	driver             driver
	engine             engine
	files              []string
	init               string
	verify             bool
	idleTime, lifeTime time.Duration
	maxIdle, maxOpen   int
}

func parseSettings(conf *service.ParsedConfig) (s settings, err error) {
	name, err := conf.FieldString(fieldDriver)
	if err != nil {
		return s, err
	}
	if s.driver, err = driverOf(name); err != nil {
		return s, err
	}
	dsn, err := conf.FieldString(fieldDSN)
	if err != nil {
		return s, err
	}
	if s.engine, err = s.driver.open(dsn); err != nil {
		return s, err
	}
	if conf.Contains(fieldFiles) {
		if s.files, err = conf.FieldStringList(fieldFiles); err != nil {
			return s, err
		}
	}
	if s.init, err = optional(conf, fieldInit); err != nil {
		return s, err
	}
	if s.verify, err = conf.FieldBool(fieldVerify); err != nil {
		return s, err
	}
	return s, s.parsePool(conf)
}

func (s *settings) parsePool(conf *service.ParsedConfig) (err error) {
	if s.idleTime, err = duration(conf, fieldIdleTime); err != nil {
		return err
	}
	if s.lifeTime, err = duration(conf, fieldLifeTime); err != nil {
		return err
	}
	if s.maxIdle, err = conf.FieldInt(fieldMaxIdle); err != nil {
		return err
	}
	s.maxOpen = s.driver.connections
	if conf.Contains(fieldMaxOpen) {
		s.maxOpen, err = conf.FieldInt(fieldMaxOpen)
	}
	return err
}

func optional(conf *service.ParsedConfig, field string) (string, error) {
	if !conf.Contains(field) {
		return "", nil
	}
	return conf.FieldString(field)
}

func duration(conf *service.ParsedConfig, field string) (time.Duration, error) {
	text, err := optional(conf, field)
	if err != nil || text == "" {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a duration: give a number with its unit, such as 30s or 5m", field, text)
	}
	return d, nil
}

// mappingOf parses an optional mapping. What is wrong with it is found by the lint
// of its field.
func mappingOf(conf *service.ParsedConfig, field string) (*bloblang.Executor, error) {
	if !conf.Contains(field) {
		return nil, nil
	}
	m, err := conf.FieldBloblang(field)
	if err != nil {
		return nil, errors.Join(errLinted, err)
	}
	return m, nil
}
