package socket

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// UserTimeout gives a Control for net.Dialer that sets how long sent data may stay
// unacknowledged (TCP_USER_TIMEOUT, in milliseconds), nil for a time that is not above
// 0: then a quarter of an hour may go by before a server that has vanished is given up.
func UserTimeout(d time.Duration) func(network, address string, c syscall.RawConn) error {
	if d <= 0 {
		return nil
	}
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
