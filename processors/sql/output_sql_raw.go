package sql

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"
)

const (
	nameRaw      = "sql_raw"
	fieldQuery   = "query"
	fieldQueries = "queries"
	fieldWhen    = "when"
	fieldDynamic = "unsafe_dynamic_query"
)

func rawSpec() *service.ConfigSpec {
	args := func() *service.ConfigField {
		return service.NewBloblangField(fieldArgs).Optional().
			Description("A mapping that gives a list with a value for each placeholder. Without it there are none.").
			Example("root = [ @windowed_row_key, this.total ]")
	}
	return service.NewConfigSpec().Beta().
		Categories("Services").
		Summary("Executes SQL for each message.").
		Description(guarantees+`

== Several queries

The entries of `+"`queries`"+` are executed for each message in their order, after `+"`query`"+` where that is given. As soon as one of them has a `+"`when`"+`, one is chosen instead: the first whose `+"`when`"+` holds, or that has none. A message that none of them is for fails with an error; put an entry without `+"`when`"+` at the end, or leave such messages out before.`).
		Fields(targetFields()...).
		Fields(
			service.NewStringField(fieldQuery).Optional().
				Description("The SQL. Placeholders are `$1`, `$2` for PostgreSQL and `?` for SQLite.").
				Example("INSERT INTO footable (foo, bar, baz) VALUES (?, ?, ?);"),
			service.NewBoolField(fieldDynamic).Default(false).Advanced().
				Description("Whether queries may hold interpolation functions. Whoever can write messages can then write SQL: prefer placeholders."),
			args(),
			service.NewObjectListField(fieldQueries,
				service.NewStringField(fieldQuery).Description("The SQL."),
				args(),
				service.NewBloblangField(fieldWhen).Optional().
					Description("A mapping that says whether this query is for the message.").
					Example(`root = @windowed_timing == "delete"`),
			).Optional().Description("More SQL for each message, or a choice of it."),
		).
		Fields(connectionFields()...).
		Example("Delete and upsert", "A row that is taken back leaves the table. With one batch at a time nothing overtakes it.", rawExample)
}

const rawExample = `
output:
  sql_raw:
    driver: sqlite
    dsn: file:./state/visits.db
    max_in_flight: 1
    queries:
      - when: root = @windowed_timing == "delete"
        query: DELETE FROM visits WHERE row_key = ?
        args_mapping: root = [ @windowed_row_key ]
      - query: |
          INSERT INTO visits (row_key, revision, clicks) VALUES (?, ?, ?)
          ON CONFLICT (row_key) DO UPDATE SET revision = excluded.revision, clicks = excluded.clicks
          WHERE excluded.revision > visits.revision
        args_mapping: root = [ @windowed_row_key, @windowed_revision, this.clicks ]
`

// query is an entry of the list.
type query struct {
	stmt    statement
	dynamic *service.InterpolatedString // in place of the text
	args    *bloblang.Executor          // nil without arguments
	when    *bloblang.Executor          // nil for always
}

// raw executes queries for each message.
type raw struct {
	queries []query
	choose  bool // one of them
}

// running is a query with its mappings bound to a batch.
type running struct {
	*query
	args, when *service.MessageBatchBloblangExecutor
}

// calls implements rowMaker.
func (r *raw) calls(batch service.MessageBatch) ([]call, []refusal) {
	return eachMessage(batch, func(batch service.MessageBatch) func(int) ([]call, error) {
		bound := make([]running, len(r.queries))
		for i := range r.queries {
			q := running{query: &r.queries[i]}
			if q.query.args != nil {
				q.args = batch.BloblangExecutor(q.query.args)
			}
			if q.query.when != nil {
				q.when = batch.BloblangExecutor(q.query.when)
			}
			bound[i] = q
		}
		return func(i int) ([]call, error) { return r.message(batch, bound, i) }
	})
}

func (r *raw) message(batch service.MessageBatch, queries []running, i int) (calls []call, err error) {
	for _, q := range queries {
		if q.when != nil {
			meant, err := truth(q.when, fieldWhen, i)
			if err != nil {
				return nil, err
			}
			if !meant {
				continue
			}
		}
		c := call{row: i, stmt: &q.stmt}
		if q.dynamic != nil {
			text, err := batch.TryInterpolatedString(i, q.dynamic)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", fieldQuery, err)
			}
			c.stmt = &statement{text: text, fields: q.stmt.fields}
		}
		if q.args != nil {
			if c.args, err = list(q.args, fieldArgs, i); err != nil {
				return nil, err
			}
		}
		calls = append(calls, c)
		if r.choose {
			break
		}
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("%s: no entry's %s holds for the message: add an entry without %s at the end, or leave such messages out before",
			fieldQueries, fieldWhen, fieldWhen)
	}
	return calls, nil
}

func newRaw(conf *service.ParsedConfig) (*writer, error) {
	s, err := parseSettings(conf)
	if err != nil {
		return nil, err
	}
	dynamic, err := conf.FieldBool(fieldDynamic)
	if err != nil {
		return nil, err
	}
	var entries []*service.ParsedConfig
	if conf.Contains(fieldQuery) {
		entries = append(entries, conf)
	} else if conf.Contains(fieldArgs) {
		return nil, fmt.Errorf("%s: is without a %s: give one, or move it into an entry of %s", fieldArgs, fieldQuery, fieldQueries)
	}
	if conf.Contains(fieldQueries) {
		more, err := conf.FieldObjectList(fieldQueries)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s: must be given, or %s with at least one entry", fieldQuery, fieldQueries)
	}
	r := &raw{}
	for _, entry := range entries {
		q, err := parseQuery(entry, dynamic)
		if err != nil {
			return nil, err
		}
		r.choose = r.choose || q.when != nil
		r.queries = append(r.queries, q)
	}
	return &writer{settings: s, maker: r}, r.reachable()
}

// reachable refuses queries that are never chosen.
func (r *raw) reachable() error {
	for i, q := range r.queries {
		if r.choose && q.when == nil && i < len(r.queries)-1 {
			return fmt.Errorf("%s %q: has no %s, so that what follows it is never chosen: give it one, or put it at the end of %s",
				fieldQuery, short(q.stmt.text), fieldWhen, fieldQueries)
		}
	}
	return nil
}

func parseQuery(conf *service.ParsedConfig, dynamic bool) (q query, err error) {
	if q.stmt.text, err = conf.FieldString(fieldQuery); err != nil {
		return q, err
	}
	if strings.TrimSpace(q.stmt.text) == "" {
		return q, fmt.Errorf("%s: must not be empty", fieldQuery)
	}
	q.stmt.fixed = true
	q.stmt.fields = fmt.Sprintf("%s %q", fieldQuery, short(q.stmt.text))
	if dynamic {
		if q.dynamic, err = service.NewInterpolatedString(q.stmt.text); err != nil {
			return q, fmt.Errorf("%s %q: with %s: %w", fieldQuery, short(q.stmt.text), fieldDynamic, err)
		}
	}
	var err1 error
	q.args, err = mappingOf(conf, fieldArgs)
	q.when, err1 = mappingOf(conf, fieldWhen)
	return q, errors.Join(err, err1)
}

// short is SQL for a message.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 100 {
		return string(r[:100]) + "..."
	}
	return text
}
