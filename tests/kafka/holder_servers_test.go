//go:build servers

package kafka

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// Without idle_timeout a partition that falls silent holds the watermark back, and
// the log names it after a minute, with the remedy.
func TestSilentPartitionIsNamed(t *testing.T) {
	t.Parallel()
	shape := stream(life.Seed(t), 200)
	s := newScenario(t, open(t), shape, 170)
	s.orders = name(t, "silent")
	s.create(t, s.orders, 5, nil)
	records := s.records()
	s.mark = ", partitions: 5"
	first := *records[0][0]
	first.Partition = 4
	s.produce(t, &first) // and never again
	p := s.run(t)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for _, batch := range records {
			_ = s.client.ProduceSync(t.Context(), batch...)
		}
		for last := records[len(records)-1]; ; {
			select {
			case <-stop:
				return
			case <-time.After(time.Second): // rows keep coming
				_ = s.client.ProduceSync(t.Context(), last...)
			}
		}
	}()
	for deadline := time.Now().Add(2 * patience); !contains(p.Log.String(), `partition \"`+s.orders+`/4\"`, "holds the watermark back", "idle_timeout"); time.Sleep(time.Second) {
		require.True(t, p.running() && time.Now().Before(deadline), "%s", p.tail())
	}
	s.out.poll(t.Context(), time.Second)
	require.Zero(t, s.out.keys(), "windows closed without it")
}

// Without idle_timeout a partition that another member has taken over holds windows
// back for a minute, and then no more.
func TestMovedPartitionsHoldWindowsForAMinute(t *testing.T) {
	t.Parallel()
	f := newFamily(t, open(t), ", session_timeout: 5s")
	f.mark = ""
	a := f.run(t, "a")
	f.begin(t, 1)
	f.grow(t, 20, a)
	b := f.run(t, "b")
	a.says("go to another member", f.orders)
	start := time.Now()
	for deadline := start.Add(2 * patience); !contains(a.Log.String(), "do not hold the watermark back any more"); time.Sleep(time.Second) {
		require.True(t, a.running() && time.Now().Before(deadline), "%s", a.tail())
		f.out.poll(t.Context(), 100*time.Millisecond)
	}
	t.Logf("after %s", time.Since(start).Round(time.Second))
	got := f.settle(t, a, b)
	require.Empty(t, got.twice())
}
