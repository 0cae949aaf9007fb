package sql

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	nameInsert   = "sql_insert"
	fieldTable   = "table"
	fieldColumns = "columns"
	fieldPrefix  = "prefix"
	fieldSuffix  = "suffix"
	fieldOptions = "options"
)

func insertSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().
		Categories("Services").
		Summary("Inserts a row into a table for each message.").
		Description(guarantees).
		Fields(targetFields()...).
		Fields(
			service.NewStringField(fieldTable).Description("The table, as it stands in SQL: quote it where SQL wants that.").Example("totals"),
			service.NewStringListField(fieldColumns).Description("The columns, as they stand in SQL.").Example([]any{"row_key", "revision", "total"}),
			service.NewBloblangField(fieldArgs).
				Description("A mapping that gives a list with a value for each of the columns.").
				Example("root = [ @windowed_row_key, @windowed_revision, this.total ]"),
			service.NewStringField(fieldPrefix).Optional().Advanced().Description("SQL to put before `INSERT`."),
			service.NewStringField(fieldSuffix).Optional().Advanced().
				Description("SQL to put behind the values, such as what to do about a row that is there already.").
				Example("ON CONFLICT (row_key) DO UPDATE SET revision = excluded.revision, total = excluded.total WHERE excluded.revision > totals.revision"),
			service.NewStringListField(fieldOptions).Optional().Advanced().
				Description("Words to put between `INSERT` and `INTO`, such as SQLite's `OR IGNORE`.").Example([]any{"OR IGNORE"}),
		).
		Fields(connectionFields()...).
		Example("Windows into PostgreSQL", "The key and the revision of a window come from its metadata: however often and in whatever order rows arrive, the table ends with the newest.", insertExample)
}

const insertExample = `
output:
  sql_insert:
    driver: postgres
    dsn: postgres://shop:secret@localhost:5432/shop?sslmode=disable
    init_statement: |
      CREATE TABLE IF NOT EXISTS totals (
        row_key TEXT PRIMARY KEY, revision BIGINT NOT NULL,
        window_start TIMESTAMPTZ, page TEXT, orders BIGINT, total NUMERIC
      );
    table: totals
    columns: [ row_key, revision, window_start, page, orders, total ]
    args_mapping: root = [ @windowed_row_key, @windowed_revision, this.window_start, this.page, this.orders, this.total ]
    suffix: |
      ON CONFLICT (row_key) DO UPDATE SET
        revision = excluded.revision, orders = excluded.orders, total = excluded.total
      WHERE excluded.revision > totals.revision
`

// insert makes an INSERT of each message.
type insert struct {
	stmt statement
	args *bloblang.Executor
}

// calls implements rowMaker.
func (n *insert) calls(batch service.MessageBatch) ([]call, []refusal) {
	return eachMessage(batch, func(batch service.MessageBatch) func(int) ([]call, error) {
		args := batch.BloblangExecutor(n.args)
		return func(i int) ([]call, error) {
			values, err := list(args, fieldArgs, i)
			if err != nil {
				return nil, err
			}
			if len(values) != len(n.stmt.columns) {
				return nil, fmt.Errorf("%s gives %d values for %d %s: let it give one for each of %s",
					fieldArgs, len(values), len(n.stmt.columns), fieldColumns, strings.Join(n.stmt.columns, ", "))
			}
			return []call{{row: i, stmt: &n.stmt, args: values}}, nil
		}
	})
}

func newInsert(conf *service.ParsedConfig) (*writer, error) {
	s, err := parseSettings(conf)
	if err != nil {
		return nil, err
	}
	n := &insert{}
	table, err := conf.FieldString(fieldTable)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(table) == "" {
		return nil, fmt.Errorf("%s: must not be empty: name the table to insert into", fieldTable)
	}
	if n.stmt.columns, err = conf.FieldStringList(fieldColumns); err != nil {
		return nil, err
	}
	if len(n.stmt.columns) == 0 {
		return nil, fmt.Errorf("%s: must not be empty: name the columns that %s gives values for", fieldColumns, fieldArgs)
	}
	if n.args, err = mappingOf(conf, fieldArgs); err != nil {
		return nil, err
	}
	prefix, err1 := optional(conf, fieldPrefix)
	suffix, err2 := optional(conf, fieldSuffix)
	var options []string
	if conf.Contains(fieldOptions) {
		options, err = conf.FieldStringList(fieldOptions)
	}
	if err := errors.Join(err, err1, err2); err != nil {
		return nil, err
	}
	n.stmt.text = n.text(s.driver.mark, table, prefix, suffix, options)
	n.stmt.fixed = true
	n.stmt.fields = fmt.Sprintf("%s %q, %s %s", fieldTable, table, fieldColumns, strings.Join(n.stmt.columns, ", "))
	if suffix != "" {
		n.stmt.fields += fmt.Sprintf(", %s %q", fieldSuffix, strings.Join(strings.Fields(suffix), " "))
	}
	n.stmt.index = index(table, suffix)
	return &writer{settings: s, maker: n}, nil
}

var conflictColumns = regexp.MustCompile(`(?i)ON\s+CONFLICT\s*\(([^()]*)\)`)

// index is the statement that makes the key which an upsert needs.
func index(table, suffix string) string {
	m := conflictColumns.FindStringSubmatch(suffix)
	if m == nil {
		return ""
	}
	_, name, qualified := strings.Cut(strings.Trim(table, "\"`[]"), ".")
	if !qualified {
		name = strings.Trim(table, "\"`[]")
	}
	return fmt.Sprintf("CREATE UNIQUE INDEX %s_key ON %s (%s)", strings.Trim(name, "\"`[]"), table, strings.TrimSpace(m[1]))
}

func (n *insert) text(mark func(int) string, table, prefix, suffix string, options []string) string {
	marks := make([]string, len(n.stmt.columns))
	for i := range marks {
		marks[i] = mark(i + 1)
	}
	var words []string
	if prefix != "" {
		words = append(words, prefix)
	}
	words = append(append(append(words, "INSERT"), options...), "INTO", table,
		"("+strings.Join(n.stmt.columns, ", ")+")", "VALUES", "("+strings.Join(marks, ", ")+")")
	if suffix != "" {
		words = append(words, suffix)
	}
	return strings.Join(words, " ")
}
