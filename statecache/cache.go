package statecache

import (
	"bytes"
	"math"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
)

// Names in the bucket of a Cache. Never change one.
var (
	bucketItems  = []byte("items")
	bucketExpiry = []byte("expiry")
)

// sweepPerWrite is how many expired entries a written entry takes away: more
// than one, so that a cache in use does not fill up with the dead.
const sweepPerWrite = 2

// never is the expiry of an entry that does not expire.
const never = math.MaxInt64

// Cache is a durable key-value cache with expiry under a name in a File, apart
// from the Space of that name. It is safe for concurrent use, and any number
// of Caches of one name share their entries. Writes that wait at the same time
// share one transaction.
//
// What need not write is seen by a look before and costs no sync: Add of a key
// that is there, Delete of one that is not, Sweep with nothing due.
//
// The wall clock is an argument, now. An entry whose time has come (expiry <=
// now) is absent at once; its space is freed by later writes and by Sweep.
type Cache struct {
	*handle
	name   string
	closed atomic.Bool
}

// Item is an entry for SetAll. A TTL of 0 or less never expires.
type Item struct {
	Key   string
	Value []byte
	TTL   time.Duration
}

// Cache opens the cache of that name, which need not exist yet. The error
// wraps ErrName or ErrClosed.
func (f *File) Cache(name string) (*Cache, error) {
	if f.closed.Load() {
		return nil, ErrClosed
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := f.retain(); err != nil {
		return nil, err
	}
	return &Cache{handle: f.handle, name: name}, nil
}

// Get returns a copy of the value, or ErrNotFound.
func (c *Cache) Get(now time.Time, key string) (value []byte, err error) {
	if c.closed.Load() {
		return nil, ErrClosed
	}
	err = c.view(place{"reading the cache", c.name}, func(tx *bolt.Tx) error {
		items, _ := c.buckets(tx)
		if items == nil {
			return ErrNotFound
		}
		v, expiry, err := cacheEntry(items, key)
		switch {
		case err != nil:
			return err
		case v == nil || expiry <= now.UnixNano():
			return ErrNotFound
		}
		value = clone(v)
		return nil
	})
	return value, err
}

// Set stores a value, in place of one that is there. A ttl of 0 or less never
// expires. It is on disk when Set returns nil.
func (c *Cache) Set(now time.Time, key string, value []byte, ttl time.Duration) error {
	return c.SetAll(now, Item{Key: key, Value: value, TTL: ttl})
}

// SetAll stores all items or, with an error, none.
func (c *Cache) SetAll(now time.Time, items ...Item) error {
	return c.change("writing the cache", func(b cacheBuckets) error {
		for _, it := range items {
			if err := b.set(it.Key, it.Value, expiryOf(now, it.TTL)); err != nil {
				return err
			}
		}
		_, err := b.sweep(now, sweepPerWrite*len(items))
		return err
	})
}

// Add stores a value unless there is one, else it returns ErrExists. Of two
// that add one key at once, one gets ErrExists.
func (c *Cache) Add(now time.Time, key string, value []byte, ttl time.Duration) error {
	if _, err := c.Get(now, key); err == nil {
		return ErrExists
	}
	exists := false
	err := c.change("adding to the cache", func(b cacheBuckets) error {
		v, expiry, err := cacheEntry(b.items, key)
		if err != nil {
			return err
		}
		if exists = v != nil && expiry > now.UnixNano(); exists {
			return nil
		}
		if err := b.set(key, value, expiryOf(now, ttl)); err != nil {
			return err
		}
		_, err = b.sweep(now, sweepPerWrite)
		return err
	})
	if err == nil && exists {
		return ErrExists
	}
	return err
}

// Delete removes a key; one that is not there is fine.
func (c *Cache) Delete(key string) error {
	if c.closed.Load() {
		return ErrClosed
	}
	there := false
	err := c.view(place{"deleting from the cache", c.name}, func(tx *bolt.Tx) error {
		items, _ := c.buckets(tx)
		there = items != nil && items.Get(appendStored(nil, raw(key))) != nil
		return nil
	})
	if err != nil || !there {
		return err
	}
	return c.change("deleting from the cache", func(b cacheBuckets) error { return b.remove(key) })
}

// Sweep frees the space of at most limit expired entries, in the order in
// which they expired, and says how many. Fewer than limit: none is left.
func (c *Cache) Sweep(now time.Time, limit int) (removed int, err error) {
	if c.closed.Load() {
		return 0, ErrClosed
	}
	due := false
	err = c.view(place{"sweeping the cache", c.name}, func(tx *bolt.Tx) (err error) {
		if _, times := c.buckets(tx); times != nil {
			keys, err := dueKeys(times, now, 1)
			due = len(keys) > 0
			return err
		}
		return nil
	})
	if err != nil || !due || limit <= 0 {
		return 0, err
	}
	err = c.change("sweeping the cache", func(b cacheBuckets) (err error) {
		removed, err = b.sweep(now, limit)
		return err
	})
	return removed, err
}

// Close drops this Cache's hold on the file. A second Close does nothing.
func (c *Cache) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.release()
}

// buckets returns both buckets, nil where nothing was written yet.
func (c *Cache) buckets(tx *bolt.Tx) (items, times *bolt.Bucket) {
	if b := tx.Bucket(bucketCaches); b != nil {
		if b = b.Bucket([]byte(c.name)); b != nil {
			return b.Bucket(bucketItems), b.Bucket(bucketExpiry)
		}
	}
	return nil, nil
}

func (c *Cache) change(what string, apply func(cacheBuckets) error) error {
	if c.closed.Load() {
		return ErrClosed
	}
	return c.update(place{what, c.name}, func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucketCaches)
		if err != nil {
			return err
		}
		if b, err = b.CreateBucketIfNotExists([]byte(c.name)); err != nil {
			return err
		}
		items, err := b.CreateBucketIfNotExists(bucketItems)
		if err != nil {
			return err
		}
		times, err := b.CreateBucketIfNotExists(bucketExpiry)
		if err != nil {
			return err
		}
		return apply(cacheBuckets{items, times})
	})
}

// cacheBuckets are the entries and their index by expiry, in a transaction.
type cacheBuckets struct{ items, times *bolt.Bucket }

// set writes an entry and its place in the index.
func (b cacheBuckets) set(key string, value []byte, expiry int64) error {
	if err := b.remove(key); err != nil {
		return err
	}
	stored := appendStored(nil, raw(key))
	if expiry != never {
		if err := b.times.Put(append(kv.AppendInt64(nil, expiry), stored...), nil); err != nil {
			return err
		}
	}
	payload := append(kv.AppendInt64(make([]byte, 0, 8+len(value)), expiry), value...)
	return b.items.Put(stored, appendEntry(nil, stored, raw(key), payload))
}

// remove takes an entry and its place in the index. A damaged entry may be
// overwritten or deleted: its place in the index then leads nowhere, and goes
// when it is due.
func (b cacheBuckets) remove(key string) error {
	stored := appendStored(nil, raw(key))
	record := b.items.Get(stored)
	if record == nil {
		return nil
	}
	if v, expiry, err := openCacheEntry(stored, record); err == nil && v != nil && expiry != never {
		if err := b.times.Delete(append(kv.AppendInt64(nil, expiry), stored...)); err != nil {
			return err
		}
	}
	return b.items.Delete(stored)
}

// sweep removes up to limit entries that are due.
func (b cacheBuckets) sweep(now time.Time, limit int) (removed int, err error) {
	due, err := dueKeys(b.times, now, limit)
	if err != nil {
		return 0, err
	}
	for _, k := range due {
		at, stored, _ := kv.Int64(k)
		if err := b.times.Delete(k); err != nil {
			return 0, err
		}
		record := b.items.Get(stored)
		if record == nil {
			continue
		}
		if _, expiry, err := openCacheEntry(stored, record); err != nil || expiry != at {
			continue
		}
		if err := b.items.Delete(stored); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// dueKeys collects up to limit entries of the index whose time has come.
func dueKeys(times *bolt.Bucket, now time.Time, limit int) (due [][]byte, err error) {
	c := times.Cursor()
	for k, _ := c.First(); k != nil && len(due) < limit; k, _ = c.Next() {
		at, _, err := kv.Int64(k)
		if err != nil || at > now.UnixNano() {
			return due, err
		}
		due = append(due, bytes.Clone(k))
	}
	return due, nil
}

// cacheEntry returns the value and expiry of a key; a nil value is absent.
func cacheEntry(items *bolt.Bucket, key string) (value []byte, expiry int64, err error) {
	payload, err := lookup(items, raw(key))
	if payload == nil || err != nil {
		return nil, 0, err
	}
	expiry, value, err = kv.Int64(payload)
	return value, expiry, err
}

func openCacheEntry(stored, record []byte) (value []byte, expiry int64, err error) {
	_, payload, err := openEntry(stored, record)
	if err != nil {
		return nil, 0, err
	}
	expiry, value, err = kv.Int64(payload)
	return value, expiry, err
}

// expiryOf is now + ttl; a ttl of 0 or less, or beyond the year 2262, is never.
func expiryOf(now time.Time, ttl time.Duration) int64 {
	at := now.UnixNano()
	if ttl <= 0 || at > never-int64(ttl) {
		return never
	}
	return at + int64(ttl)
}
