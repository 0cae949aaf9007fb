package postgres

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

// binary is the command that users run.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "connect-windowed-sql-")
	if err == nil {
		binary = filepath.Join(dir, "connect-windowed")
		build := exec.Command("go", "build", "-o", binary, "./cmd/connect-windowed")
		build.Dir = filepath.Join("..", "..")
		var out []byte
		if out, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
