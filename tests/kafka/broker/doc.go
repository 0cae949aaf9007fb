// Package broker starts Kafka brokers for tests and benchmarks: a real one, from
// its published jars, in a process of its own, and kfake, which lives in the
// process of the test and listens on a TCP port all the same.
package broker

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
