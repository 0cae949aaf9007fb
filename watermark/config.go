package watermark

import (
	"fmt"
	"time"
)

// Policy says how the partitions of a source make its watermark. Across sources it is
// always the minimum.
type Policy uint8

const (
	// PolicyMin takes the slowest active partition: no row of an active partition that is
	// at most the delay behind is ever late.
	PolicyMin Policy = iota
	// PolicyMax takes the fastest active partition, as Spark's single global watermark
	// does: rows of slower partitions are late.
	PolicyMax
)

var policies = [...]string{PolicyMin: "min", PolicyMax: "max"}

// ParsePolicy reads "min" or "max". The error wraps ErrName.
func ParsePolicy(name string) (Policy, error) {
	for p, known := range policies {
		if known == name {
			return Policy(p), nil
		}
	}
	return PolicyMin, fmt.Errorf("%w: policy %q: allowed are min and max", ErrName, clip(name))
}

// String is the name that ParsePolicy reads.
func (p Policy) String() string {
	if int(p) < len(policies) {
		return policies[p]
	}
	return fmt.Sprintf("policy %d", uint8(p))
}

// SourceConfig describes one source: a stream of rows with its own event time and delay.
type SourceConfig struct {
	// Name identifies the source in the state; "" where there is one unnamed source.
	Name string
	// Delay is how far rows may be behind the newest of their partition; not negative.
	Delay time.Duration
	// IdleTimeout is how long a partition may be silent, while others speak, before it
	// no longer holds W back. 0 turns idleness off, and makes W wait for ever for what is
	// declared and never speaks.
	IdleTimeout time.Duration
	// Partitions are declared by name: W waits for each of them at the start.
	Partitions []string
	// PartitionCount declares partitions by number: W waits until so many different ones
	// have spoken. 0: not declared.
	PartitionCount int
}

// declared reports whether the partitions of the source are known beforehand.
func (c *SourceConfig) declared() bool {
	return len(c.Partitions) > 0 || c.PartitionCount > 0
}

// DefaultStartupGrace is the startup grace of sources whose rows carry a partition.
const DefaultStartupGrace = 5 * time.Second

// Config configures a Frontier. Everything but the names of the sources may change
// between runs over the same state.
type Config struct {
	// Sources has at least one entry; names are distinct.
	Sources []SourceConfig
	// Policy holds within each source.
	Policy Policy
	// StartupGrace is how long W stays unset after the first row of a source whose
	// partitions are not declared, so that the others can speak. Negative: the default,
	// DefaultStartupGrace where rows carry a partition other than "", else none.
	StartupGrace time.Duration
	// IdleAdvance lets W move in silence, see Frontier.Tick.
	IdleAdvance bool
}

// Clock is time as an argument.
type Clock struct {
	// Wall is the time of day. Only IdleAdvance reads it, as an upper bound, so steps of
	// the wall clock idle nobody.
	Wall Time
	// Mono is a monotonic clock: it starts anywhere and only grows. A smaller value than
	// before counts as the same.
	Mono time.Duration
	// Backlog says that work is waiting: what is silent may only not have been read yet.
	// It holds from this Clock to the next one, and no idle time passes meanwhile.
	Backlog bool
}
