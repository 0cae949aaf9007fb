package statecache

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// place says what is done where in a file; it becomes text only in an error.
type place struct{ what, name string }

func (p place) String() string {
	if p.name == "" {
		return p.what
	}
	return fmt.Sprintf("%s %q", p.what, p.name)
}

// guard runs fn, which reads the mapped file, and turns what bbolt and the
// hardware make of damage into a *DamageError: assertions and index panics,
// faults on pages that the disk no longer delivers, and wrong checksums.
// Nothing of a caller (a visit function) may run inside: its panics are its
// own.
func guard(path string, where place, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &DamageError{path, where.String(), fmt.Errorf("%v", r)}
		}
	}()
	err = fn()
	var known *DamageError
	if errors.Is(err, kv.ErrCorrupt) && !errors.As(err, &known) {
		return &DamageError{path, where.String(), err}
	}
	return err
}
