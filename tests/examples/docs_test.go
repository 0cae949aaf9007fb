package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing/agg"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// The documents below are checked so that they cannot drift from the program.

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// blocks are the fenced blocks of a language in a document.
func blocks(text, language string) (found []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func documents(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	require.NoError(t, err)
	return append(found, filepath.Join(root, "README.md"))
}

// A document's YAML is a configuration that lint accepts.
func TestDocumentsAreLintClean(t *testing.T) {
	for _, file := range documents(t) {
		_, err := command(t, root, nil, "lint", file)
		require.NoError(t, err, file)
	}
}

func TestReadmeShowsTheQuickStart(t *testing.T) {
	config := blocks(document(t, "README.md"), "yaml")
	require.NotEmpty(t, config)
	require.Contains(t, document(t, "config/examples/quickstart.yaml"), config[0])
}

// Rows in the README are rows that the examples print.
func TestReadmeShowsRealRows(t *testing.T) {
	printed := document(t, "tests/testdata/examples/quickstart.ndjson") +
		document(t, "tests/testdata/examples/earthquakes.ndjson")
	shown := strings.Join(blocks(document(t, "README.md"), "json"), "")
	require.NotEmpty(t, shown)
	for row := range strings.Lines(shown) {
		require.Contains(t, printed, row)
	}
}

// The main.go of the README compiles in this module.
func TestReadmeMainCompiles(t *testing.T) {
	code := blocks(document(t, "README.md"), "go")
	require.Len(t, code, 1)
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(file, []byte(code[0]), 0o600))
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "connect"), file)
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	list, err := exec.Command(filepath.Join(dir, "connect"), "list", "inputs").Output()
	require.NoError(t, err)
	require.Contains(t, string(list), "- windowed\n")
}

func TestEveryAggregateIsDocumented(t *testing.T) {
	text := document(t, "docs/semantics.md")
	for _, f := range agg.Functions() {
		require.Contains(t, text, "`"+f.Name+"(", "aggregate %s", f.Name)
	}
}

func TestEveryMetricIsDocumented(t *testing.T) {
	text := document(t, "docs/operations.md")
	for _, name := range []string{
		host.RowsIn, host.LateRows, host.InvalidRows, host.DuplicateRows, host.RowsEmitted, host.Watermark, host.WatermarkLag,
		host.OpenWindows, host.Groups, host.StateBytes, host.Commits, host.CommitTime, host.CommitErrors,
		host.OutboxRows, host.Redelivered, host.Faults, host.Nacked,
	} {
		require.Contains(t, text, "| `"+name+"` |")
	}
}

// Links between documents and into the repository lead somewhere.
func TestDocumentsLinkToFiles(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(file), m[1]))
			require.NoError(t, err, "in %s", file)
		}
	}
}
