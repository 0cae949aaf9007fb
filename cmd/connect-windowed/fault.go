package main

import (
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"
)

// How long a faulted process may take to hand over what it had emitted, and how
// often it is asked to stop meanwhile: a process that is still starting up does
// not listen yet.
const (
	faultGrace  = 10 * time.Second
	faultRepeat = 500 * time.Millisecond
)

// exitFault is the exit status after a fault.
const exitFault = 1

// faultStop ends the process after a fault of a running component. Benthos has no
// way to stop a stream with an error from inside, so the process interrupts
// itself, which is a graceful stop, and then exits 1; it does so too when the
// stop takes longer than the grace. The component has logged the fault before.
type faultStop struct {
	grace     time.Duration
	interrupt func()
	exit      func(int)

	once    sync.Once
	faulted atomic.Bool
}

func newFaultStop() *faultStop {
	return &faultStop{grace: faultGrace, interrupt: interruptSelf, exit: os.Exit}
}

// report is the hook for processors.OnFault. The first fault starts the stop, it
// returns only when the grace is over.
func (f *faultStop) report(error) {
	f.once.Do(func() {
		f.faulted.Store(true)
		deadline := time.NewTimer(f.grace)
		defer deadline.Stop()
		repeat := time.NewTicker(faultRepeat)
		defer repeat.Stop()
		for {
			f.interrupt()
			select {
			case <-repeat.C:
			case <-deadline.C:
				f.exit(exitFault)
				return
			}
		}
	})
}

// exitCode is the exit status of a process whose command line returned code.
func (f *faultStop) exitCode(code int) int {
	if f.faulted.Load() && code == 0 {
		return exitFault
	}
	return code
}

// ignored receives the interrupts that nobody else listens for.
var ignored = make(chan os.Signal, 1)

// interruptSelf asks this process to stop. Where a process cannot be interrupted
// (Windows) the grace ends it.
func interruptSelf() {
	signal.Notify(ignored, os.Interrupt) // else it would kill a process that is still starting
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(os.Interrupt)
	}
}
