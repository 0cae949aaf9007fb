//go:build !unix

package statecache

import "time"

func child() bool { return false }

func cpuTime() time.Duration { return 0 }
