// Package sql registers the outputs sql_insert and sql_raw.
package sql

import (
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)
