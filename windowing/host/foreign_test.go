package host

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/windowing"
)

// A slow foreign processor holds up its batch only: rows leave, refused ones come
// back, and delivered ones are removed.
func TestSlowForeignProcessor(t *testing.T) {
	p := newProcessor()
	r := newRig(t, func() []windowing.Stage { return foreignStage(passes()) }, func(c *Config) {
		c.Foreign, c.Limits.BatchRows = p.run, 1
	}).open()
	first := r.offer(events(0, at(0, "a"), at(0, "b"), at(0, "c")))
	p.result <- foreignResult{rows: <-p.called}
	r.wait(first, "the first batch")
	second := r.offer(events(3, at(1, "d")))
	rows := <-p.called

	d := r.next()
	d.Settle(d.All())
	require.ElementsMatch(t, []string{"a=1", "b=1", "c=1"}, texts(r.take(3)))
	require.Eventually(t, func() bool { return r.disk.now(t).keys(t, outboxPrefix) == 0 }, patience, time.Millisecond)
	third := r.offer(events(4, at(2, "e")))
	require.True(t, open1(second))
	p.result <- foreignResult{rows: rows}
	p.result <- foreignResult{rows: <-p.called}
	r.wait(second, "the second batch")
	r.wait(third, "the third batch")
	require.Equal(t, []string{"d=1", "e=1"}, texts(r.take(2)))
}

// A stop while a foreign processor runs abandons the step: nothing of it is
// committed or acknowledged.
func TestCloseDuringForeignProcessor(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		t.Run(fmt.Sprint("heeds its context: ", heeds), func(t *testing.T) {
			p := newProcessor()
			returned := make(chan struct{})
			r := newRig(t, func() []windowing.Stage { return foreignStage(sums()) }, func(c *Config) {
				c.Foreign = func(ctx context.Context, stage int, rows []windowing.Row) ([]windowing.Row, error) {
					out, err := p.run(ctx, stage, rows)
					if err != nil {
						if !heeds {
							time.Sleep(closeGrace / 4) // it takes its time
						}
						close(returned)
					}
					return out, err
				}
			}).open()
			first := r.offer(events(0, at(1, "a")))
			p.result <- foreignResult{rows: <-p.called}
			r.wait(first, "the first batch")
			commits := r.disk.commits()
			second := r.offer(events(1, at(2, "a")))
			<-p.called
			third := r.offer(events(2, at(3, "a")))
			r.close()
			require.False(t, open1(returned), "nothing of the host runs any more")
			require.True(t, open1(second))
			require.True(t, open1(third))
			require.Equal(t, commits, r.disk.commits())
			require.Empty(t, r.faults, "a stop is no fault")

			r.change = func(c *Config) { c.Foreign = through }
			r.open()
			r.offer(events(0, at(1, "a"), at(2, "a"), at(3, "a"), at(11, "b")))
			require.Equal(t, []string{"a=3"}, texts(r.take(1)))
		})
	}
}

// Rows that were delivered while it ran do not come again, and nothing is said of
// the disk, which is fine.
func TestSettledRowsDuringForeignProcessor(t *testing.T) {
	p := newProcessor()
	r := newRig(t, func() []windowing.Stage { return foreignStage(passes()) }, func(c *Config) { c.Foreign = p.run }).open()
	r.offer(events(0, at(1, "a")))
	p.result <- foreignResult{rows: <-p.called}
	d := r.next()
	r.offer(events(1, at(2, "b")))
	<-p.called
	d.Settle(nil)
	r.close()
	require.Zero(t, r.disk.keys(t, outboxPrefix))
	require.Empty(t, r.log.all())
}

// through is a foreign processor that changes nothing.
func through(_ context.Context, _ int, rows []windowing.Row) ([]windowing.Row, error) {
	return rows, nil
}

// A step whose foreign processor ends in time is whole, and is committed at a stop.
func TestCloseWaitsForForeignProcessor(t *testing.T) {
	p := newProcessor()
	r := newRig(t, func() []windowing.Stage { return foreignStage(sums()) }, func(c *Config) { c.Foreign = p.run }).open()
	acked := r.offer(events(0, at(1, "a")))
	rows := <-p.called
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = r.Close(context.Background())
	}()
	<-r.stop
	p.result <- foreignResult{rows: rows}
	r.wait(closed, "Close")
	require.False(t, open1(acked))
}

// Foreign processors may drop rows, add some and make them invalid.
func TestForeignProcessorChangesRows(t *testing.T) {
	r := newRig(t, func() []windowing.Stage {
		stages := foreignStage(sums())
		return append(stages, windowing.Stage{Foreign: true, Kind: "foreign"})
	}, func(c *Config) {
		c.Foreign = func(_ context.Context, stage int, rows []windowing.Row) (out []windowing.Row, err error) {
			if stage == 3 { // behind the window: two of each
				for _, row := range rows {
					out = append(out, row, row)
				}
				return out, nil
			}
			for _, row := range rows {
				switch n := row.Message.(*note); n.key {
				case "drop":
				case "twice":
					out = append(out, row, row)
				case "fail":
					row.Flag, row.Err = windowing.Invalid, errors.New("no")
					out = append(out, row)
				default:
					out = append(out, row)
				}
			}
			return out, nil
		}
	}).open()
	acked := r.offer(events(0, at(1, "drop")))
	r.wait(acked, "a batch of which nothing is left")
	r.offer(events(1, at(1, "twice"), at(2, "fail"), at(3, "a")))
	failed := r.take(2)
	require.Equal(t, "no", failed[0].err)
	r.offer(events(4, at(11, "drop"))) // moves the watermark all the same
	require.Equal(t, []string{"a=1", "a=1", "twice=2", "twice=2"}, texts(r.take(4)))
}

// A processor that fails stops the reading; what it had is not acknowledged.
func TestForeignProcessorFails(t *testing.T) {
	broken := errors.New("broken")
	p := newProcessor()
	r := newRig(t, func() []windowing.Stage { return foreignStage(sums()) }, func(c *Config) { c.Foreign = p.run }).open()
	acked := r.offer(events(0, at(1, "a")))
	<-p.called
	p.result <- foreignResult{err: broken}
	require.ErrorIs(t, <-r.faults, broken)
	commits := r.disk.commits()
	start := time.Now()
	r.close()
	require.Less(t, time.Since(start), closeGrace)
	require.True(t, open1(acked))
	require.Equal(t, commits, r.disk.commits())
}

// A close in parts goes through a foreign stage part by part, and over a restart
// in the middle of it.
func TestForeignStageBehindLargeClose(t *testing.T) {
	stages := func() []windowing.Stage {
		return append(sums(), windowing.Stage{Foreign: true, Kind: "foreign"}, windowStage("w2", 10*time.Second, firstLetter))
	}
	var sizes []int
	r := newRig(t, stages, func(c *Config) {
		c.Foreign = func(_ context.Context, _ int, rows []windowing.Row) ([]windowing.Row, error) {
			sizes = append(sizes, len(rows))
			return rows, nil
		}
	})
	r.limit = 10
	r.open()
	var notes []*note
	for i := range 35 {
		notes = append(notes, at(1, fmt.Sprintf("%c%02d", 'a'+i%2, i)))
	}
	r.offer(events(0, notes...))
	r.wait(r.offer(events(35, at(10, "z"))), "the first close")
	require.Equal(t, []int{10, 10, 10, 5}, sizes)
	r.offer(events(36, at(21, "z")))
	require.Equal(t, []string{"a=18", "b=17", "z=1"}, texts(r.take(3)))

	commits := r.disk.commits()
	r.change = func(c *Config) { c.Foreign = through }
	for n := range commits + 1 {
		next := r.backTo(n)
		next.offer(events(0, notes...))
		next.offer(events(35, at(10, "z")))
		next.offer(events(36, at(21, "z")))
		require.Equal(t, []string{"a=18", "b=17", "z=1"}, texts(next.take(3)), "stopped after %d of %d commits", n, commits)
		next.close()
	}
}
