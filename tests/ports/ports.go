// Package ports finds TCP ports for servers that tests stop and start again.
//
// The kernel takes ports of outgoing connections from a range of its own. A client
// that dials a server which is down may get the very port that it dials: it is then
// connected to itself, and its end holds the port for a minute (TIME-WAIT, RFC 9293,
// section 3.3.2). The ports found here lie outside that range.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
)

// lowest is the lowest port that Free gives: those below belong to known services.
const lowest = 10000

// enough ports must lie on one side of the kernel's range for Free to use it.
const enough = 1000

// span holds the ports from, ..., to-1.
type span struct{ from, to int }

// Free gives n different ports of 127.0.0.1 that nobody listens on and no outgoing
// connection takes. Where the kernel leaves no others, they are of its range.
func Free(n int) (free []int, err error) {
	from := outside(outgoing("/proc/sys/net/ipv4/ip_local_port_range"))
	for tries := 0; len(free) < n; tries++ {
		port := 0 // any
		if from != (span{}) {
			port = from.from + rand.IntN(from.to-from.from)
		}
		l, err := net.Listen("tcp", Local(port))
		if err != nil && tries < enough && port != 0 {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer l.Close() // after all are found, so that they differ
		free = append(free, l.Addr().(*net.TCPAddr).Port)
	}
	return free, nil
}

// Local is the address of a port on this machine.
func Local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// outgoing reads the kernel's range from Linux' file. Where there is none it is
// taken to begin where Linux' does, below the 49152 of other systems (RFC 6335,
// section 6).
func outgoing(file string) span {
	s := span{from: 32768, to: 65536}
	if text, err := os.ReadFile(file); err == nil {
		var first, last int
		if _, err := fmt.Sscan(string(text), &first, &last); err == nil {
			s = span{from: first, to: last + 1}
		}
	}
	return s
}

// outside gives the ports below the kernel's range, or those above it, or none.
func outside(kernel span) span {
	for _, s := range []span{{lowest, kernel.from}, {max(lowest, kernel.to), 65536}} {
		if s.to-s.from >= enough {
			return s
		}
	}
	return span{}
}
