package processors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/statecache"
	"github.com/connect-windowed/connect-windowed/windowing/host/failpoint"
)

const (
	nameBbolt       = "bbolt"
	fieldPath       = "path"
	fieldTTL        = "default_ttl"
	fieldLockWait   = "lock_timeout"
	fieldSweepEvery = "sweep_interval"
	sweepLimit      = 10_000 // entries in one transaction
)

func bboltSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().
		Summary("Keeps a cache, and the state of windowed hosts and operators, in a bbolt file.").
		Description(`One file serves any number of components of one process: hosts and operators that name the cache's label as their ` + "`state`" + `, each under its own name, and everything that uses a cache. Another process cannot open the file meanwhile. Every write is on disk when it returns; writes that wait together share one.

Expired entries are absent at once, and their space is used again. A bbolt file does not shrink: stop and run ` + "`bbolt compact`" + ` to give space back to the disk.

` + "`connect-windowed test` and `lint`" + ` never open the file: the cache is in memory there.`).
		Field(service.NewStringField(fieldPath).Description("The file. It is created with its folders where it does not exist. Keep it on a local disk.").Example("./state/orders.db")).
		Field(service.NewStringField(fieldTTL).Optional().LintRule(durationLint(fieldTTL, false)).
			Description("How long entries live that are set without a TTL. For ever by default. It does not concern the state of hosts and operators.")).
		Field(service.NewStringField(fieldSweepEvery).Default("60s").Advanced().LintRule(durationLint(fieldSweepEvery, false)).
			Description("How often expired entries are looked for while nothing is written. `0s` is never: writes look for some as well.")).
		Field(service.NewStringField(fieldLockWait).Default("5s").Advanced().LintRule(durationLint(fieldLockWait, false)).
			Description("How long to wait for a file that another process holds before the start fails."))
}

// bboltCache implements service.Cache. The file is opened with the first access:
// a cache that only hosts use is opened by them.
type bboltCache struct {
	settings cacheSettings
	label    string
	ttl      time.Duration // 0: for ever
	log      *service.Logger

	every time.Duration

	mu     sync.Mutex // protects what follows
	file   *statecache.File
	cache  *statecache.Cache
	stop   func() // the sweeper
	closed bool   // what comes later must not open the file again
}

// parseBbolt reads the configuration of a cache.
func parseBbolt(conf *service.ParsedConfig) (*bboltCache, error) {
	path, err := conf.FieldString(fieldPath)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, fmt.Errorf("%s: must not be empty: give the path of a file", fieldPath)
	}
	c := &bboltCache{}
	if c.ttl, err = parseDuration(conf, 0, fieldTTL); err != nil {
		return nil, err
	}
	if c.every, err = parseDuration(conf, time.Minute, fieldSweepEvery); err != nil {
		return nil, err
	}
	wait, err := parseDuration(conf, 0, fieldLockWait)
	c.settings = cacheSettings{path: path, options: statecache.Options{LockTimeout: wait, GenerationBytes: failpoint.Generation()}}
	return c, err
}

func newBboltCache(conf *service.ParsedConfig, res *service.Resources) (service.Cache, error) {
	c, err := parseBbolt(conf)
	if err != nil {
		return nil, err
	}
	c.label, c.log = res.Label(), res.Logger()
	res.SetGeneric(cacheKey{c.label}, c.settings)
	if dryRun() {
		return newDryCache(c.ttl), nil
	}
	return c, nil
}

// open gives the storage, opened when it is first needed.
func (c *bboltCache) open() (*statecache.Cache, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, statecache.ErrClosed
	case c.cache != nil:
		return c.cache, nil
	}
	file, err := statecache.Open(c.settings.path, c.settings.options)
	if err != nil {
		return nil, err
	}
	cache, err := file.Cache(c.label)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	c.file, c.cache = file, cache
	if c.every > 0 {
		c.stop = c.sweeper(cache)
	}
	return cache, nil
}

// sweeper looks for expired entries now and then, until it is stopped.
func (c *bboltCache) sweeper(cache *statecache.Cache) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(c.every); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case now := <-tick.C:
				for n := sweepLimit; n == sweepLimit && ctx.Err() == nil; {
					var err error
					if n, err = cache.Sweep(now, sweepLimit); err != nil {
						c.log.Warnf("cache %q: expired entries could not be removed: %v", c.label, err)
					}
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

// Get implements service.Cache.
func (c *bboltCache) Get(_ context.Context, key string) ([]byte, error) {
	cache, err := c.open()
	if err != nil {
		return nil, err
	}
	value, err := cache.Get(time.Now(), key)
	return value, cacheError(err)
}

// Set implements service.Cache.
func (c *bboltCache) Set(_ context.Context, key string, value []byte, ttl *time.Duration) error {
	cache, err := c.open()
	if err != nil {
		return err
	}
	return cacheError(cache.Set(time.Now(), key, value, c.lifetime(ttl)))
}

// SetMulti sets several entries in one transaction.
func (c *bboltCache) SetMulti(_ context.Context, entries ...service.CacheItem) error {
	cache, err := c.open()
	if err != nil {
		return err
	}
	items := make([]statecache.Item, len(entries))
	for i, e := range entries {
		items[i] = statecache.Item{Key: e.Key, Value: e.Value, TTL: c.lifetime(e.TTL)}
	}
	return cacheError(cache.SetAll(time.Now(), items...))
}

// Add implements service.Cache.
func (c *bboltCache) Add(_ context.Context, key string, value []byte, ttl *time.Duration) error {
	cache, err := c.open()
	if err != nil {
		return err
	}
	return cacheError(cache.Add(time.Now(), key, value, c.lifetime(ttl)))
}

// Delete implements service.Cache.
func (c *bboltCache) Delete(_ context.Context, key string) error {
	cache, err := c.open()
	if err != nil {
		return err
	}
	return cacheError(cache.Delete(key))
}

// Close implements service.Cache.
func (c *bboltCache) Close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.cache == nil {
		return nil
	}
	if c.stop != nil {
		c.stop()
	}
	err := errors.Join(c.cache.Close(), c.file.Close())
	c.cache, c.file, c.stop = nil, nil, nil
	return err
}

func (c *bboltCache) lifetime(ttl *time.Duration) time.Duration {
	if ttl != nil {
		return *ttl
	}
	return c.ttl
}

// cacheError translates the errors that components of Benthos look for.
func cacheError(err error) error {
	switch {
	case errors.Is(err, statecache.ErrExists):
		return service.ErrKeyAlreadyExists
	case errors.Is(err, statecache.ErrNotFound):
		return service.ErrKeyNotFound
	}
	return err
}

func init() {
	spec := bboltSpec()
	lintBy(nameBbolt, spec, func(conf *service.ParsedConfig) error { _, err := parseBbolt(conf); return err })
	must(service.RegisterCache(nameBbolt, spec, newBboltCache))
}
