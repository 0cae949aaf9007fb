package kafka

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// A member that the brokers have taken as gone says why that may be and what helps,
// unless it closes itself.
func TestLossIsExplained(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	r := newInput(t, c, "topics: [ orders ]\nconsumer_group: g\nsession_timeout: 7s\nheartbeat_interval: 1s\nrebalance_timeout: 11s")
	var log bytes.Buffer
	r.log = service.NewLoggerFromSlog(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	s := connect(t, r).joined
	s.lost(context.Background(), s.client, nil)
	require.Empty(t, log.String())
	s.lost(context.Background(), s.client, map[string][]int32{"orders": {0, 1}})
	for _, part := range []string{"level=WARN", "orders/0, orders/1", "7s of session_timeout", "11s of rebalance_timeout", "raise"} {
		require.Contains(t, log.String(), part)
	}
	require.NoError(t, r.Close(context.Background()))
	log.Reset()
	s.lost(context.Background(), s.client, map[string][]int32{"orders": {0}})
	require.NotContains(t, log.String(), "WARN")
}
