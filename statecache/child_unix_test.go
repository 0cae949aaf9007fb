//go:build unix

package statecache

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// Some tests need another process: the test binary runs itself with childRole
// set and plays a part instead of testing.
const (
	childRole = "STATECACHE_TEST_ROLE"
	childPath = "STATECACHE_TEST_PATH"
)

// child plays the part that the environment asks for, if any.
func child() bool {
	path := os.Getenv(childPath)
	switch os.Getenv(childRole) {
	case "":
		return false
	case "hold":
		hold(path)
	case "full":
		full(path)
	}
	return true
}

func start(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, childPath+"="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// hold opens the file, commits, says so, and keeps it until its input ends.
func hold(path string) {
	f, err := Open(path, Options{})
	if err == nil {
		var s *Space
		if s, err = f.Lease("orders"); err == nil {
			var b kv.Batch
			b.Put([]byte("by"), []byte("child"))
			err = s.Commit(&b)
		}
	}
	fmt.Println("held", err)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

func TestHeldByAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	cmd := start(t, "hold", path)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held <nil>\n", line)
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	for _, timeout := range []time.Duration{-1, 200 * time.Millisecond} {
		began := time.Now()
		_, err = Open(path, Options{LockTimeout: timeout})
		require.ErrorIs(t, err, ErrInUse)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "held by another process")
		require.GreaterOrEqual(t, time.Since(began), timeout)
		require.Less(t, time.Since(began), 4*time.Second)
	}
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after, "the holder's file is not touched")

	// Killed, not closed: the lock goes with the process, the commit stays.
	require.NoError(t, cmd.Process.Kill())
	_ = in.Close()
	_ = cmd.Wait()
	s := lease(t, open(t, path, Options{}), "orders")
	require.Equal(t, map[string]string{"by": "child"}, contents(t, s))
}

// full limits the size of files to what the state has, and a little, so that
// commits fail as on a full disk; then lifts the limit.
func full(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	fmt.Println("full", fullDisk(path))
}

func fullDisk(path string) error {
	f, err := Open(path, Options{GenerationBytes: 64 << 10})
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := f.Lease("orders")
	if err != nil {
		return err
	}
	want := map[string]string{}
	var b kv.Batch
	next := 0
	grow := func() {
		b.Reset()
		for range 200 {
			key := fmt.Sprintf("k%06d", next)
			next++
			b.Put([]byte(key), make([]byte, 100))
			want[key] = string(make([]byte, 100))
		}
	}
	for range 20 {
		grow()
		if err := s.Commit(&b); err != nil {
			return fmt.Errorf("with room: %w", err)
		}
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	// Beyond the end the file cannot grow; within it, some pages of a
	// transaction are written and some are not.
	for _, room := range []int64{32 << 10, -8 << 10, -size / 3, 32 << 10, -size / 4} {
		limit := syscall.Rlimit{Cur: uint64(size + room), Max: ^uint64(0)}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		for err = nil; err == nil; {
			grow()
			err = s.Commit(&b)
		}
		for range 3 { // it stays full
			switch err := s.Commit(&b); {
			case err == nil:
				return errors.New("a commit succeeded on a full disk")
			case !strings.Contains(err.Error(), "file too large") || !strings.Contains(err.Error(), path):
				return fmt.Errorf("room %d: %w", room, err)
			}
			if v, err := s.Get([]byte("k000000")); err != nil || len(v) != 100 {
				return fmt.Errorf("reads go on: %d bytes, %w", len(v), err)
			}
			if v, err := s.Get([]byte(fmt.Sprintf("k%06d", next-1))); err != nil || v != nil {
				return fmt.Errorf("a failed batch is visible: %d bytes, %w", len(v), err)
			}
		}
		limit.Cur = limit.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		if err := s.Commit(&b); err != nil {
			return fmt.Errorf("the same batch with room again: %w", err)
		}
		if size, err = f.Size(); err != nil {
			return err
		}
	}
	return same(s, want)
}

func same(s *Space, want map[string]string) error {
	n := 0
	err := s.Scan(nil, nil, func(k, v []byte) error {
		n++
		if w, ok := want[string(k)]; !ok || w != string(v) {
			return fmt.Errorf("key %q has %d bytes", k, len(v))
		}
		return nil
	})
	if err == nil && n != len(want) {
		err = fmt.Errorf("%d keys, %d expected", n, len(want))
	}
	return err
}

// TestDiskFull runs in a process of its own: the limit holds for all of it.
func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	out, err := start(t, "full", path).Output()
	require.NoError(t, err)
	require.Equal(t, "full <nil>\n", string(out))
	f := open(t, path, Options{})
	verify(t, f.handle)
	require.Equal(t, 0, len(contents(t, lease(t, f, "orders")))%200, "whole batches only")
}

// cpuTime is what the process has used of processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
