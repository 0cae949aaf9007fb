// Package crash holds what is proved with the real binary: kill -9 at random and
// at named moments, faults of the source, damaged and full state files.
package crash

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// binary is the product's command with the plugins of these tests linked in and
// its failpoints armed. Nothing else differs from what users run.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "connect-windowed-")
	if err == nil {
		binary, err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// extra is a file that the build sees in the folder of the command.
const extra = `package main

import _ "github.com/connect-windowed/connect-windowed/tests/crash/plugins"
`

func build(dir string) (string, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	source, overlay := filepath.Join(dir, "plugins.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(source, []byte(extra), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "cmd", "connect-windowed", "zz_test_plugins.go"): source}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	args := []string{"-tags", "failpoints", "-overlay", overlay}
	if race {
		args = append(args, "-race")
	}
	return life.Build(dir, args...)
}

// soaks is true where the long loops are wanted.
func soaks() bool { return os.Getenv("SOAK") != "" }

func TestTheBinaryHasItsPlugins(t *testing.T) {
	out, err := exec.Command(binary, "list", "inputs", "outputs").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "test_source")
	require.Contains(t, string(out), "test_journal")
}
