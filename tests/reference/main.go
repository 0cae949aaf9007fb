// Command reference writes a page for each component of the project, from the
// specs that Benthos knows it by.
//
//	go run ./tests/reference docs/reference
//
// The argument is the folder; pages of components that are gone are removed.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	_ "github.com/connect-windowed/connect-windowed/processors"
	_ "github.com/connect-windowed/connect-windowed/processors/kafka"
	_ "github.com/connect-windowed/connect-windowed/processors/sql"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: reference FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// write makes the folder hold the pages and nothing else.
func write(folder string) error {
	pages, err := pages()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if _, ok := pages[filepath.Base(path)]; !ok {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}
