package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/ports"
)

// A server that is not there is said, with the remedy and without the password, and
// nothing is lost: Benthos connects again.
func TestNoServer(t *testing.T) {
	free, err := ports.Free(1)
	require.NoError(t, err)
	w, err := construct(nameRaw, fmt.Sprintf("driver: postgres\ndsn: postgres://u:secret@127.0.0.1:%d/d?sslmode=disable\nquery: SELECT 1\n", free[0]))
	require.NoError(t, err)
	require.NoError(t, w.Connect(t.Context()), "nothing to say yet")
	require.ErrorIs(t, w.WriteBatch(t.Context(), batchOf("1", "2")), service.ErrNotConnected)
	for range 2 {
		err = w.Connect(t.Context())
		for _, part := range []string{"dsn: server 127.0.0.1:", `user "u"`, `database "d"`, "is the server up", "connection refused"} {
			require.ErrorContains(t, err, part)
		}
		require.NotContains(t, err.Error(), "secret")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.WriteBatch(ended, batchOf("1")), context.Canceled)
	require.NoError(t, w.Close(context.Background()))
	require.ErrorIs(t, w.Connect(t.Context()), service.ErrEndOfInput)
}

// A connection that is of no use is not made again and again without a pause.
func TestUselessConnection(t *testing.T) {
	w, err := construct(nameRaw, "driver: sqlite\ndsn: ':memory:'\nquery: SELECT 1\n")
	require.NoError(t, err)
	w.engine = useless{w.engine}
	defer w.Close(context.Background())
	start := time.Now()
	for range 6 {
		require.NoError(t, w.Connect(t.Context()))
		require.ErrorIs(t, w.WriteBatch(t.Context(), batchOf("1")), service.ErrNotConnected)
		require.ErrorIs(t, w.WriteBatch(t.Context(), batchOf("1")), service.ErrNotConnected)
	}
	require.Equal(t, 6, w.faults, "those that break together count once")
	require.Greater(t, time.Since(start), 500*time.Millisecond)
	w.faults = 1000
	ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, w.Connect(ended), context.DeadlineExceeded)
	w.engine = w.engine.(useless).engine
	require.NoError(t, w.WriteBatch(t.Context(), batchOf("1")))
	require.Zero(t, w.faults)
}

// useless is a database that answers and takes nothing.
type useless struct{ engine }

func (useless) write(context.Context, *stdsql.Conn, []call, bool) ([]refusal, error) {
	return nil, marked{errors.New("read-only"), errClosed}
}

func (useless) judge(error) kind { return ofConnection }

func TestVerifiedConnection(t *testing.T) {
	w, err := construct(nameRaw, "driver: postgres\ndsn: postgres://u@127.0.0.1:1/d?sslmode=disable\nquery: SELECT 1\ninit_verify_conn: true\n")
	require.NoError(t, err)
	require.ErrorContains(t, w.Connect(t.Context()), "is the server up")
	require.NoError(t, w.Close(context.Background()))
}

func TestJudgePostgres(t *testing.T) {
	e := &postgresEngine{}
	for code, want := range map[string]kind{
		"22P02": ofRow, "23505": ofRow, "44000": ofRow, "P0001": ofRow,
		"P0002": ofStatement, "42P10": ofStatement, "42P01": ofStatement, "42501": ofStatement, "53100": ofStatement, "57014": ofStatement, "21000": ofStatement,
		"08006": ofConnection, "28P01": ofConnection, "57P01": ofConnection, "57P03": ofConnection, "53300": ofConnection, "25006": ofConnection,
		"40001": ofOthers, "40P01": ofOthers, "55P03": ofOthers,
	} {
		require.Equal(t, want, e.judge(fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code})), code)
	}
	require.Equal(t, ofStatement, e.judge(errors.New("anything")))
	require.Equal(t, ofConnection, e.judge(marked{errors.New("write failed"), errClosed}))
	require.Equal(t, ofRow, e.judge(ofItsRow(errors.New("no such value"))))
	require.Equal(t, ofConnection, e.judge(&net.OpError{Err: errors.New("reset")}))
}
