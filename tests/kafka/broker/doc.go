// Package broker starts Kafka brokers for tests and benchmarks: a real one, from
// its published jars, in a process of its own, and kfake, which lives in the
// process of the test and listens on a TCP port all the same.
package broker

import (
	"net"
	"strconv"
)

// Broker is one Kafka broker on this machine. Its data outlives Stop and Kill.
type Broker interface {
	// Addr is host:port, the same over all lives.
	Addr() string
	// Start begins another life. It returns when the broker answers.
	Start() error
	// Stop ends a life in an orderly way.
	Stop() error
	// Kill ends a life at once, as far as the broker can be killed.
	Kill() error
}

// freePorts finds ports that nobody listens on.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // after all are found, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
