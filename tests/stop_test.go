package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/tests/drive"
)

// stuck makes the output hang until it is released.
func stuck(p *drive.Pipe) (hangs <-chan struct{}, release func()) {
	first, open := make(chan struct{}, 1), make(chan struct{})
	p.Sink.Refuse(func([]drive.Message) []int {
		select {
		case first <- struct{}{}:
		default:
		}
		<-open
		return nil
	})
	return first, func() { close(open) }
}

// An output that hangs stops the reading at a bound, and nothing is lost when it
// goes on.
func TestAnOutputThatHangsMakesTheInputWait(t *testing.T) {
	const batches, keys = 1000, 100
	p := started(t, drive.InputHost, drive.Setup{})
	hangs, release := stuck(p)
	for i := range batches {
		p.Feed.Send(func() service.MessageBatch {
			var rows []string
			for k := range keys {
				rows = append(rows, fmt.Sprintf(`{"k":"%d","ts":%d}`, k, 10*i))
			}
			return batchOf(rows...)
		}, nil)
	}
	<-hangs
	last := -1
	require.Eventually(t, func() bool { // until it stands still
		before := last
		last = p.Feed.Waiting()
		return last == before
	}, patience, 300*time.Millisecond)
	require.Greater(t, last, batches/4, "batches that wait at the source")
	release()
	p.Feed.End()
	require.NoError(t, p.WaitEnd(patience))
	require.Len(t, p.Sink.Messages(), (batches-1)*keys)
}

// A stop that cannot wait for the output loses nothing: what was not delivered
// comes with the next start.
func TestHardStop(t *testing.T) {
	for _, form := range drive.Forms() {
		t.Run(form.Name, func(t *testing.T) {
			setup := drive.Setup{StateFile: t.TempDir() + "/state.db", Position: byPosition}
			p := started(t, form, setup)
			offer(t, p, `{"_p":"p0","_o":0,"k":"a","ts":1}`, `{"_p":"p0","_o":1,"k":"b","ts":1}`)
			hangs, release := stuck(p)
			closing := `{"_p":"p0","_o":2,"k":"z","ts":11}`
			d := p.Feed.Send(func() service.MessageBatch { return batchOf(closing) }, nil)
			<-hangs
			stopped := p.StopWithin(500 * time.Millisecond)
			release()
			require.NoError(t, p.WaitEnd(patience), "%v", stopped)
			acknowledged := false
			select {
			case <-d.Acked():
				acknowledged = true
			default:
			}
			delivered := map[string]bool{}
			for _, row := range rowsOf(p) {
				delivered[row] = true
			}

			p = started(t, form, setup)
			if !acknowledged {
				offer(t, p, closing)
			}
			require.Eventually(t, func() bool {
				for _, row := range rowsOf(p) {
					delivered[row] = true
				}
				return len(delivered) == 2
			}, patience, time.Millisecond)
			require.NoError(t, p.Stop())
		})
	}
}
