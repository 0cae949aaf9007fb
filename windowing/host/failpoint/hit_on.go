//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Enabled says whether this build can kill itself.
const Enabled = true

var (
	load   = sync.OnceValues(fromEnv)
	counts atomic.Int64
)

// Hit kills the process if the environment names this point and this is the
// n-th time that it is reached. It is safe for concurrent use.
func Hit(name string) {
	want, n := load()
	if want != name {
		return
	}
	if counts.Add(1) != n {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way: nothing may follow this point
}

func fromEnv() (name string, n int64) {
	text := os.Getenv(Env)
	if text == "" {
		return "", 0
	}
	name, n, err := parse(text)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s=%s: %v\n", Env, text, err)
		os.Exit(2)
	}
	return name, n
}

// parse reads <name> or <name>:<n>, n from 1.
func parse(text string) (name string, n int64, err error) {
	name, count, counted := strings.Cut(text, ":")
	n = 1
	if counted {
		if n, err = strconv.ParseInt(count, 10, 64); err != nil || n < 1 {
			return "", 0, fmt.Errorf("the count %q is not a whole number from 1", count)
		}
	}
	if !slices.Contains(Names(), name) {
		return "", 0, fmt.Errorf("no such point, the points are %s", strings.Join(Names(), ", "))
	}
	return name, n, nil
}

// Generation is the size in bytes at which the state's log starts to fold into
// its base, 0 where the environment does not say. A small one folds all the time.
func Generation() int { return number(EnvGeneration) }

// Part is the number of rows in a part of a close, 0 where the environment does
// not say. A small one cuts every close into parts.
func Part() int { return number(EnvPart) }

func number(env string) int {
	text := os.Getenv(env)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		fmt.Fprintf(os.Stderr, "%s=%s: not a whole number from 1\n", env, text)
		os.Exit(2)
	}
	return n
}
