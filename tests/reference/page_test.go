package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The pages in docs/reference are what the specs say now.
func TestReferenceIsCurrent(t *testing.T) {
	const folder = "../../docs/reference"
	want, err := pages()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(folder, "*.md"))
	require.NoError(t, err)
	require.Len(t, files, len(want), "pages that are missing or gone: run make docs")
	for name, text := range want {
		have, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err, "run make docs")
		require.Equal(t, string(text), string(have), "%s is not current: run make docs", name)
	}
}
