//go:build !linux

package sql

import (
	"syscall"
	"time"
)

// userTimeout does nothing where the system has no such setting.
func userTimeout(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
