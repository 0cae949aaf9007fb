package postgres

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// SQLite needs no server: the same streams and kills.
func TestSqliteKilledAtRandom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.db")
	read, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	defer read.Close()
	s := &sink{driver: "sqlite", dsn: "file:" + path, read: read, time: "TEXT"}
	killedAtRandom(t, s, 6, 64)
}
