// Package postgres runs private PostgreSQL servers for tests. Tests that need one
// have the build tag servers:
//
//	go test -tags servers ./tests/postgres ./processors/sql
//
// They fail where PostgreSQL is not installed.
package postgres

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/connect-windowed/connect-windowed/tests/ports"
)

//go:embed postgres.sh
var script string

// Server is a PostgreSQL server in a folder of its own, without data but what its
// user puts there.
type Server struct {
	// DSN names a superuser and stays the same over restarts.
	DSN    string
	folder string
	port   int
}

// Start makes a cluster and starts its server. Whoever calls it calls Wipe. It
// fails where PostgreSQL is not installed, saying how to install it.
func Start() (*Server, error) {
	free, err := ports.Free(1)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "connect-windowed-postgres-")
	if err != nil {
		return nil, err
	}
	// The server may run as somebody else, who must be able to come here.
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, err
	}
	s := &Server{folder: folder, port: free[0]}
	if err := os.WriteFile(filepath.Join(folder, "postgres.sh"), []byte(script), 0o600); err != nil {
		return nil, err
	}
	if s.DSN, err = s.run("start"); err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	return s, nil
}

// Restart ends the server as a crash does and starts it again. Transactions under
// way are lost, committed ones are not.
func (s *Server) Restart() error {
	if err := s.Crash(); err != nil {
		return err
	}
	return s.Resume()
}

// Crash ends the server as a crash does.
func (s *Server) Crash() error {
	_, err := s.run("crash")
	return err
}

// Resume starts a server that was crashed.
func (s *Server) Resume() error {
	_, err := s.run("start")
	return err
}

// Wipe ends the server and removes everything.
func (s *Server) Wipe() error {
	_, err := s.run("wipe")
	return errors.Join(err, os.RemoveAll(s.folder))
}

func (s *Server) run(action string) (string, error) {
	cmd := exec.Command("bash", filepath.Join(s.folder, "postgres.sh"), action, filepath.Join(s.folder, "cluster"), strconv.Itoa(s.port))
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("postgres.sh %s: %w\n%s", action, err, problems.String())
	}
	return strings.TrimSpace(string(out)), nil
}
