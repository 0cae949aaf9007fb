package postgres

import (
	"fmt"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// binary is the command that users run.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "connect-windowed-sql-")
	if err == nil {
		binary, err = life.Build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
