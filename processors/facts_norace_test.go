//go:build !race

package processors_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

// Two that ask at the same time have a cache made twice. Benthos has a data race
// there.
func TestFactCacheMadeTwice(t *testing.T) {
	var made atomic.Int64
	both := make(chan struct{})
	conf := plug(t, pluginCache, func(*service.ParsedConfig, *service.Resources) (any, error) {
		if made.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
		case <-time.After(patience):
		}
		return &cache{}, nil
	})
	asks(t, "cache_resources: [ { label: state, "+conf[1:]+" ]", func(res *service.Resources) {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _ = res.AccessCache(context.Background(), "state", func(service.Cache) {}) })
		}
		wg.Wait()
	})
	require.EqualValues(t, 2, made.Load())
}
