//go:build servers

package postgres

import (
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// newServer is a server of the test's own.
func newServer(t testing.TB) (*Server, *sink) {
	t.Helper()
	server, err := Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Wipe()) })
	read, err := sql.Open("pgx", server.DSN)
	require.NoError(t, err)
	read.SetMaxIdleConns(-1) // a crash of the server ends what waits in the pool
	t.Cleanup(func() { require.NoError(t, read.Close()) })
	return server, &sink{driver: "postgres", dsn: server.DSN, read: read, time: "TIMESTAMPTZ"}
}

// However often the process is killed, the table ends with the answer.
func TestKilledAtRandom(t *testing.T) {
	_, s := newServer(t)
	killedAtRandom(t, s, 20, 64)
}

// However often the server crashes under load, the process goes on, and the table
// ends with the answer.
func TestServerCrashes(t *testing.T) {
	server, s := newServer(t)
	base := life.Seed(t)
	for _, mode := range modes {
		rnd := rand.New(rand.NewPCG(base, 0))
		stream := events(rnd, mode.rows)
		j := &job{sink: s, dir: t.TempDir(), table: mode.name, operator: mode.operator, onEnd: mode.onEnd, parallel: 8}
		write(t, filepath.Join(j.dir, "events.ndjson"), stream)
		s.table(t, j.table)
		p := j.start(t)
		s.moves(t, p, j.table)
		require.NoError(t, server.Restart())
		crashes := 1
		for running := true; running; {
			select {
			case <-p.Exited:
				running = false
			case <-time.After(time.Duration(50+rnd.IntN(500)) * time.Millisecond):
				if crashes++; crashes > 12 {
					p.ended(t)
				} else {
					require.NoError(t, server.Restart())
				}
			}
		}
		p.succeeded(t)
		require.Equal(t, sorted(mode.answer(stream)), s.content(t, j.table), "%s, seed %d", mode.name, base)
		t.Logf("%s: %d crashes", mode.name, crashes)
	}
}
