package sql

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTurns(t *testing.T) {
	var own turns
	first, second := own.take(), own.take() // side by side
	first()
	second()
	own.conflict()
	own.conflict()
	require.Equal(t, leastAlone, own.alone)
	var inside atomic.Int32
	var all sync.WaitGroup
	for range leastAlone {
		all.Go(func() {
			defer own.take()()
			if inside.Add(1) != 1 {
				t.Error("not alone")
			}
			inside.Add(-1)
		})
	}
	all.Wait()
	first, second = own.take(), own.take()
	first()
	second()
	for range 30 {
		own.conflict()
		own.alone = 0
	}
	own.conflict()
	require.Equal(t, mostAlone, own.alone)
}
