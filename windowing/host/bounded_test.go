package host

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/statecache/kv/kvtest"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// firsts are stages that let one row of each key pass.
func firsts() []windowing.Stage {
	d := windowing.NewDedupe(windowing.DedupeConfig{Name: "d", Within: time.Hour})
	return []windowing.Stage{watermarkStage(0), {Name: "d", Kind: "watermark_dedupe", Operator: d, Binding: keyedBinding{}, Definition: d.Definition()}}
}

// unreadable is a store of which reads fail on demand.
type unreadable struct {
	kv.Store
	broken atomic.Bool
}

func (s *unreadable) Get(key []byte) ([]byte, error) {
	if s.broken.Load() {
		return nil, kvtest.ErrInjected
	}
	return s.Store.Get(key)
}

// bounded makes the chain of a rig hold nothing in memory, over a store that may
// become unreadable.
func bounded(t *testing.T, stages func() []windowing.Stage) (*rig, *unreadable) {
	store := &unreadable{}
	r := newRig(t, stages, func(cfg *Config) {
		chain, err := windowing.NewChain(windowing.Config{Stages: stages(), Memory: 1, Start: watermark.Clock{Wall: cfg.Clock.Wall(), Mono: cfg.Clock.Mono()}})
		require.NoError(t, err)
		store.Store = cfg.Store
		cfg.Chain, cfg.Store = chain, store
	})
	return r.open(), store
}

// A duplicate is found on disk by a host that holds nothing in memory, over restarts.
func TestStateBeyondMemory(t *testing.T) {
	r, _ := bounded(t, firsts)
	r.wait(r.offer(events(0, at(1, "a"), at(2, "b"))), "the first commit")
	require.Len(t, r.take(2), 2)
	r.wait(r.offer(events(2, at(3, "a"), at(4, "c"), at(5, "b"))), "the second commit")
	require.Equal(t, []string{"c=1"}, texts(r.take(1)))
	r.reopen()
	r.wait(r.offer(events(5, at(6, "c"), at(7, "a"), at(8, "d"))), "the third commit")
	require.Equal(t, []string{"d=1"}, texts(r.take(1)))
}

// What cannot be read back is a fault: nothing of the batch is acknowledged, and the
// next run applies it.
func TestUnreadableStateIsAFault(t *testing.T) {
	r, store := bounded(t, firsts)
	r.wait(r.offer(events(0, at(1, "a"))), "the first commit")
	require.Len(t, r.take(1), 1)
	store.broken.Store(true)
	acked := r.offer(events(1, at(2, "b"), at(3, "a")))
	require.ErrorIs(t, <-r.faults, kvtest.ErrInjected)
	require.True(t, open1(acked), "acknowledged")
	store.broken.Store(false)
	r.reopen()
	r.wait(r.offer(events(1, at(2, "b"), at(3, "a"))), "the second commit")
	require.Equal(t, []string{"b=1"}, texts(r.take(1)))
}
