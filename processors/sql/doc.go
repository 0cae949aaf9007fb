// Package sql registers the outputs sql_insert and sql_raw, for PostgreSQL and
// SQLite, with the fields that they have in Redpanda Connect.
//
// A batch is one transaction, in which the rows are executed one after the other:
// one statement for many rows cannot upsert a key twice. A row that the database
// refuses for its own reason (a value, a constraint) undoes the transaction, which
// is then repeated with a savepoint around each row: the others are committed, and
// a service.BatchError names those that were refused. A lost connection gives
// service.ErrNotConnected, upon which Benthos connects again and repeats the batch.
//
// Nobody else owns anything here: a writer owns its pool, a call of WriteBatch
// owns a connection of it.
package sql
