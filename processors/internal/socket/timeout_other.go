//go:build !linux

package socket

import (
	"syscall"
	"time"
)

// UserTimeout gives nil: the system has no such setting.
func UserTimeout(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
