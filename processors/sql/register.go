package sql

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/internal/lint"
)

// guarantees is what the manuals of both outputs begin with.
const guarantees = `
== Transactions and delivery

A batch is one transaction: a reader sees all of it or nothing, and it is acknowledged after its commit. Rows are executed in their order, one after the other, so a batch may hold several revisions of a key. If the database refuses a row for a reason of its own (a value that does not fit, a constraint), the transaction is repeated without it and only the refused messages fail, each with the reason; where every row would be refused (no such table, no permission), the batch fails. A failed message is tried again by whoever sent it. If the connection is lost, the output connects again and repeats the batch.

A crash, or a connection lost in the middle of a commit, may write a batch a second time. An upsert by a key makes that harmless: ` + "`windowed_row_key`" + ` for rows that may be revised, with a condition on ` + "`windowed_revision`" + ` so that an older row never replaces a newer one.

== Values

| Bloblang | PostgreSQL | SQLite |
|---|---|---|
| null | NULL | NULL |
| text | text that the server reads as the type of the column: a number, an RFC 3339 timestamp, a UUID, JSON | TEXT |
| number | with all its digits; an integer written as ` + "`1.0`" + ` or ` + "`1e3`" + ` fits an integer column | INTEGER up to 64 bits, REAL where that keeps all digits, else TEXT with all digits |
| bool | boolean | INTEGER 0 or 1 |
| timestamp | timestamptz, date and the like; microseconds | TEXT, RFC 3339 in UTC |
| bytes | bytea, or text for other columns | BLOB |
| object | JSON, for json, jsonb and text columns | TEXT with JSON |
| list | an array where the column is one, else JSON | TEXT with JSON |

A text for a json column is taken as JSON: use ` + "`.format_json()`" + ` for a JSON string.`

func init() {
	for name, output := range map[string]struct {
		spec *service.ConfigSpec
		make func(*service.ParsedConfig) (*writer, error)
	}{
		nameInsert: {insertSpec(), newInsert},
		nameRaw:    {rawSpec(), newRaw},
	} {
		rules.Add(name, lint.Component{Spec: output.spec, Check: func(conf *service.ParsedConfig) error {
			_, err := output.make(conf)
			return err
		}})
		service.MustRegisterBatchOutput(name, output.spec,
			func(conf *service.ParsedConfig, res *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
				policy, err := conf.FieldBatchPolicy(fieldBatching)
				if err != nil {
					return nil, policy, 0, err
				}
				parallel, err := conf.FieldMaxInFlight()
				if err != nil {
					return nil, policy, 0, err
				}
				w, err := output.make(conf)
				if err != nil {
					return nil, policy, 0, err
				}
				w.log, w.fs = res.Logger(), res.FS()
				return w, policy, parallel, nil
			})
	}
}
