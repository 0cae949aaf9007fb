//go:build servers

package sql

import (
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

// changedTable: what the log tells to do about a column helps at once, also on
// connections that have prepared the statement before.
func changedTable(t *testing.T) {
	d := newSchema(t, "CREATE TABLE t (k text, n int)")
	for name, mode := range map[string]string{"prepared": "", "described": "&default_query_exec_mode=cache_describe"} {
		w := d.postgres(nameInsert, "dsn: DSN"+mode+"\ntable: t\ncolumns: [ k, n ]\nargs_mapping: root = [ this.k, this.n ]\n")
		big := batchOf(`{"k":"a","n":3000000000}`)
		require.ErrorContains(t, w.WriteBatch(t.Context(), big), "use BIGINT", name)
		d.exec("ALTER TABLE t ALTER n TYPE bigint")
		require.NoError(t, w.WriteBatch(t.Context(), big), name)
		d.exec("DROP TABLE t")
		d.exec("CREATE TABLE t (k jsonb, n jsonb)")
		list := batchOf(`{"k":{"a":1},"n":[1,"x"]}`)
		if w.WriteBatch(t.Context(), list) != nil { // the statement was prepared for the former table
			require.NoError(t, w.WriteBatch(t.Context(), list), name)
		}
		require.Equal(t, []string{`{"a": 1}|[1, "x"]`}, d.rows("SELECT k::text, n::text FROM t"), name)
		d.exec("DROP TABLE t")
		d.exec("CREATE TABLE t (k text, n int)")
		if w.WriteBatch(t.Context(), big) == nil {
			t.Fatal("the column is an int again")
		}
	}
}

// The deferred constraint fails at the commit: no row can be named.
func deferredConstraint(t *testing.T) {
	d := newSchema(t, "CREATE TABLE t (v int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
	w := d.postgres(nameInsert, "table: t\ncolumns: [ v ]\nargs_mapping: root = [ this ]")
	err := w.WriteBatch(t.Context(), batchOf("1", "2", "1"))
	require.ErrorContains(t, err, "23505")
	var named *service.BatchError
	require.NotErrorAs(t, err, &named)
	require.Empty(t, d.rows("SELECT v FROM t"))
	require.NoError(t, w.WriteBatch(t.Context(), batchOf("1", "2")))
}
