//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package statecache

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lock takes the lock that bbolt takes, before bbolt does, so that the file is
// checked while nobody writes it: an flock belongs to the open file, and bbolt
// is handed the same one. False: somebody else held it all the time.
func lock(f *os.File, timeout time.Duration) (bool, error) {
	for end := time.Now().Add(timeout); ; time.Sleep(lockRetry) {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return false, err
		case time.Now().After(end):
			return false, nil
		}
	}
}
