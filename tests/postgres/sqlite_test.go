package postgres

import (
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/life"
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

// What the table refuses holds back nothing else, is tried again, and is taken when
// the table is put right.
func TestRefusedRowsAreTriedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.db")
	read, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	defer read.Close()
	s := &sink{driver: "sqlite", dsn: "file:" + path, read: read, time: "TEXT"}
	stream := events(rand.New(rand.NewPCG(life.Seed(t), 0)), 2000)
	var others []event
	for _, e := range stream {
		if e.k != "k3" {
			others = append(others, e)
		}
	}
	for _, mode := range modes {
		j := &job{sink: s, dir: t.TempDir(), table: mode.name, operator: mode.operator, onEnd: mode.onEnd, parallel: 8}
		write(t, filepath.Join(j.dir, "events.ndjson"), stream)
		s.table(t, j.table)
		_, err = read.Exec("CREATE TRIGGER refuse BEFORE INSERT ON " + j.table + " WHEN new.k = 'k3' BEGIN SELECT RAISE(ABORT, 'not this one'); END")
		require.NoError(t, err)
		p := j.start(t)
		want := sorted(mode.answer(others))
		require.Eventually(t, func() bool { return slices.Equal(want, s.content(t, j.table)) }, time.Minute, 20*time.Millisecond,
			"%s: the others\n%s", mode.name, p.Log.String())
		require.Contains(t, p.Log.String(), "not this one")
		_, err = read.Exec("DROP TRIGGER refuse")
		require.NoError(t, err)
		p.ended(t)
		require.Equal(t, sorted(mode.answer(stream)), s.content(t, j.table), mode.name)
	}
}
