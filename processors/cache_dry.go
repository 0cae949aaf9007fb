package processors

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// dryCache stands in for a bbolt cache where no file may be touched.
type dryCache struct {
	ttl time.Duration

	mu      sync.Mutex // protects entries
	entries map[string]dryEntry
}

type dryEntry struct {
	value  []byte
	expiry time.Time // zero: never
}

func newDryCache(ttl time.Duration) *dryCache {
	return &dryCache{ttl: ttl, entries: map[string]dryEntry{}}
}

// live gives an entry that has not expired. The caller holds the mutex.
func (c *dryCache) live(key string) (dryEntry, bool) {
	e, ok := c.entries[key]
	return e, ok && (e.expiry.IsZero() || time.Now().Before(e.expiry))
}

// Get implements service.Cache.
func (c *dryCache) Get(_ context.Context, key string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.live(key)
	if !ok {
		return nil, service.ErrKeyNotFound
	}
	return slices.Clone(e.value), nil
}

// Set implements service.Cache.
func (c *dryCache) Set(_ context.Context, key string, value []byte, ttl *time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(key, value, ttl)
	return nil
}

func (c *dryCache) set(key string, value []byte, ttl *time.Duration) {
	life := c.ttl
	if ttl != nil {
		life = *ttl
	}
	e := dryEntry{value: slices.Clone(value)}
	if life > 0 {
		e.expiry = time.Now().Add(life)
	}
	c.entries[key] = e
}

// Add implements service.Cache.
func (c *dryCache) Add(_ context.Context, key string, value []byte, ttl *time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.live(key); ok {
		return service.ErrKeyAlreadyExists
	}
	c.set(key, value, ttl)
	return nil
}

// Delete implements service.Cache.
func (c *dryCache) Delete(_ context.Context, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
	return nil
}

// Close implements service.Cache.
func (c *dryCache) Close(context.Context) error { return nil }
