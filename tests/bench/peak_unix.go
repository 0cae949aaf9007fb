//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// peakOf is the largest resident memory of a process in bytes, pages of the state file
// that are mapped included.
func peakOf(p *os.ProcessState) float64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return float64(usage.Maxrss)
	}
	return float64(usage.Maxrss) * 1024
}
