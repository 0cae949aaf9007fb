package sql

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout sets how long sent data may stay unacknowledged: by default a quarter
// of an hour goes by before a server that has vanished is given up.
func userTimeout(d time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) (err error) {
		if network == "unix" {
			return nil
		}
		failed := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
		})
		if failed != nil {
			return failed
		}
		return err
	}
}
