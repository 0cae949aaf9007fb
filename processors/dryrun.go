package processors

import "sync/atomic"

// dryRunning is read by constructors, on any goroutine.
var dryRunning atomic.Bool

// SetDryRun says whether components keep their state in memory whatever their
// configuration says. While it is true no state file is opened, created, locked
// or leased, and nothing outlives the process. It is false at the start.
//
// The constructor of a component cannot tell whether it serves a running stream
// or a unit test of a configuration, so the program has to: call it before the
// components are constructed, which is when they read it. It is safe for
// concurrent use. The command connect-windowed sets it for its subcommands test
// and lint.
func SetDryRun(on bool) { dryRunning.Store(on) }

// dryRun reports what SetDryRun set. Constructors that would open a state file
// ask it first.
func dryRun() bool { return dryRunning.Load() }
