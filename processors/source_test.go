package processors

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// heard is a host that writes down what it is told.
type heard []move

func (h *heard) Moved(gone, come []string) { *h = append(*h, move{gone, come}) }

// What an input tells before its host is there is told when it is.
func TestPartitionMoves(t *testing.T) {
	require.False(t, InsideHost())
	require.Nil(t, NewPartitionMoves())
	(*PartitionMoves)(nil).Tell([]string{"a/0"}, nil)

	var m *PartitionMoves
	n, err := observe(&nursery{input: true}, func() error {
		require.True(t, InsideHost())
		m = NewPartitionMoves()
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []*PartitionMoves{m}, n.moved())

	m.Tell(nil, []string{"a/0", "a/1"})
	m.Tell(nil, nil)
	h := &heard{}
	m.attach(h)
	m.Tell([]string{"a/1"}, nil)
	require.Equal(t, heard{{come: []string{"a/0", "a/1"}}, {gone: []string{"a/1"}}}, *h)

	_, err = observe(&nursery{}, func() error { // a processor of the chain
		require.False(t, InsideHost())
		require.Nil(t, NewPartitionMoves())
		return nil
	})
	require.NoError(t, err)
}
