package kafka

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/connect-windowed/connect-windowed/tests/life"
)

// Orders that are written in transactions, of which some are aborted: those are not
// counted, and the holes that the markers leave in the offsets do no harm, over a
// kill either.
func TestTransactions(t *testing.T) {
	t.Parallel()
	s := newScenario(t, open(t), stream(life.Seed(t), 1500), 170)
	s.input = ", instance_id: a, transaction_isolation_level: read_committed, auto_replay_nacks: false"
	writer, err := kgo.NewClient(append(slices.Clone(s.options), kgo.TransactionalID(name(t, "writer")), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	require.NoError(t, err)
	t.Cleanup(writer.Close)
	write := func(end kgo.TransactionEndTry, records []*kgo.Record) {
		require.NoError(t, writer.BeginTransaction())
		for _, r := range records {
			again := *r
			writer.Produce(t.Context(), &again, nil)
		}
		require.NoError(t, writer.Flush(t.Context()))
		require.NoError(t, writer.EndTransaction(t.Context(), end))
	}
	p := s.run(t)
	for i, batch := range s.records() {
		if i%3 == 0 {
			write(kgo.TryAbort, batch)
		}
		write(kgo.TryCommit, batch)
		if i%40 == 39 {
			s.grow(t, p, 10)
			p.Kill()
			p = s.run(t)
		}
	}
	s.finish(t, p)
}
