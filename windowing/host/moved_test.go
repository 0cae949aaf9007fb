package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Partitions that move leave their state behind, which is said with the number of
// windows; those that nothing is known of leave nothing.
func TestMovedPartitionsAreSaid(t *testing.T) {
	r := newRig(t, sums, nil)
	o := still(r)
	o.take(events(0, at(1, "a"), at(1, "b"), at(2, "a")))
	o.work()
	known := ""
	for name := range o.positions.parts {
		known = name
	}

	o.moved(moved{gone: []string{known, "orders/9"}})
	log := r.log.all()
	require.Len(t, log, 1)
	require.Contains(t, log[0], known+" go to another member")
	require.Contains(t, log[0], `"w" holds 1 windows, 2 groups`)
	require.NotContains(t, log[0], "orders/9")

	o.moved(moved{gone: []string{"orders/9"}})
	require.Len(t, r.log.all(), 1)

	o.moved(moved{come: []string{known, "orders/9"}})
	log = r.log.all()
	require.Len(t, log, 3)
	require.Contains(t, log[1], known+" are read here, where their state is")
	require.Contains(t, log[2], "orders/9 are read here without state")
}

// A host that has ended hears nothing, and nobody waits for it.
func TestMovedAfterTheEnd(t *testing.T) {
	r := newRig(t, sums, nil)
	r.open()
	r.Host.Moved([]string{"orders/1"}, nil)
	require.NoError(t, r.Host.Close(context.Background()))
	r.Host.Moved([]string{"orders/1"}, nil)
}
