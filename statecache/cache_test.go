package statecache

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
)

func newCache(t testing.TB, f *File, name string) *Cache {
	t.Helper()
	c, err := f.Cache(name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// at is a wall clock of so many seconds.
func at(sec int64) time.Time { return time.Unix(sec, 0) }

func absent(t *testing.T, c *Cache, now time.Time, key string) {
	t.Helper()
	_, err := c.Get(now, key)
	require.ErrorIs(t, err, ErrNotFound)
}

func has(t *testing.T, c *Cache, now time.Time, key, want string) {
	t.Helper()
	v, err := c.Get(now, key)
	require.NoError(t, err)
	require.Equal(t, want, string(v))
}

// sizes counts the entries and the index, dead ones included.
func sizes(t *testing.T, c *Cache) (items, times int) {
	t.Helper()
	require.NoError(t, c.view(place{what: "counting"}, func(tx *bolt.Tx) error {
		i, e := c.buckets(tx)
		items, times = i.Stats().KeyN, e.Stats().KeyN
		return nil
	}))
	return items, times
}

func TestCache(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "c.db"), Options{NoSync: true})
	c := newCache(t, f, "c")
	absent(t, c, at(0), "k")
	n, err := c.Sweep(at(0), 10)
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, c.Delete("k"))

	long := strings.Repeat("x", 40000)
	for i, key := range []string{"", "k", long + "a", long + "b"} {
		require.NoError(t, c.Set(at(0), key, []byte(fmt.Sprint(i)), 0))
		has(t, c, at(9_000_000_000), key, fmt.Sprint(i))
		require.ErrorIs(t, c.Add(at(0), key, nil, 0), ErrExists)
	}
	require.NoError(t, c.Set(at(0), "k", nil, time.Second))
	has(t, c, at(0), "k", "")
	require.NoError(t, c.Delete("k"))
	absent(t, c, at(0), "k")
	require.NoError(t, c.Add(at(0), "k", []byte("added"), 0))
	has(t, c, at(0), "k", "added")

	other := newCache(t, f, "other")
	absent(t, other, at(0), "k")
	has(t, newCache(t, f, "c"), at(0), "k", "added")
	items, times := sizes(t, c)
	require.Equal(t, []int{4, 0}, []int{items, times})
}

func TestCacheExpiry(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "c.db"), Options{NoSync: true})
	c := newCache(t, f, "c")
	require.NoError(t, c.Set(at(100), "k", []byte("v"), 10*time.Second))
	has(t, c, at(110).Add(-1), "k", "v")
	absent(t, c, at(110), "k")
	require.ErrorIs(t, c.Add(at(109), "k", nil, 0), ErrExists)
	require.NoError(t, c.Add(at(110), "k", []byte("again"), time.Second), "an expired entry is none")
	has(t, c, at(110), "k", "again")

	// A new value takes its own expiry: the old place in the index is gone.
	require.NoError(t, c.Set(at(110), "k", []byte("long"), time.Hour))
	n, err := c.Sweep(at(200), 100)
	require.NoError(t, err)
	require.Zero(t, n)
	has(t, c, at(200), "k", "long")
	require.NoError(t, c.Set(at(200), "k", []byte("ever"), math.MaxInt64))
	has(t, c, at(9_000_000_000), "k", "ever")
	items, times := sizes(t, c)
	require.Equal(t, []int{1, 0}, []int{items, times})

	// Times before 1970 are times.
	require.NoError(t, c.Set(at(-100), "old", []byte("v"), time.Second))
	has(t, c, at(-100), "old", "v")
	absent(t, c, at(-99), "old")
}

func TestCacheFreesSpace(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "c.db"), Options{NoSync: true})
	c := newCache(t, f, "c")
	for i := range 100 {
		require.NoError(t, c.Set(at(0), fmt.Sprint(i), make([]byte, 1000), time.Duration(1+i)*time.Second))
	}
	n, err := c.Sweep(at(50), 20)
	require.NoError(t, err)
	require.Equal(t, 20, n)
	n, err = c.Sweep(at(50), 100)
	require.NoError(t, err)
	require.Equal(t, 30, n)
	items, times := sizes(t, c)
	require.Equal(t, []int{50, 50}, []int{items, times})

	// Writes alone keep a cache in bounds: entries live 10 s, one comes each
	// second.
	for i := range 1000 {
		require.NoError(t, c.Set(at(int64(1000+i)), fmt.Sprintf("w%d", i), make([]byte, 1000), 10*time.Second))
	}
	items, times = sizes(t, c)
	require.LessOrEqual(t, items, 12)
	require.Equal(t, items, times)
	size, err := f.Size()
	require.NoError(t, err)
	require.Less(t, size, int64(1<<20), "space is used again")
	verify(t, f.handle)
}

// TestCacheAgainstModel runs random calls with a clock that also steps back.
func TestCacheAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	path := filepath.Join(t.TempDir(), "c.db")
	type entry struct {
		value  string
		expiry int64
	}
	model := map[string]entry{}
	now := int64(1000)
	for range 5 {
		f := open(t, path, Options{NoSync: true})
		c := newCache(t, f, "c")
		for step := range 400 {
			now += int64(r.IntN(5))
			key := fmt.Sprint(r.IntN(30))
			old, there := model[key]
			live := there && old.expiry > now
			ttl := time.Duration(r.IntN(20)) * time.Second
			next := entry{fmt.Sprint(step), math.MaxInt64}
			if ttl > 0 {
				next.expiry = now + int64(ttl/time.Second)
			}
			switch r.IntN(5) {
			case 0:
				require.NoError(t, c.Set(at(now), key, []byte(next.value), ttl))
				model[key] = next
			case 1:
				err := c.Add(at(now), key, []byte(next.value), ttl)
				require.Equal(t, live, errors.Is(err, ErrExists))
				if !live {
					require.NoError(t, err)
					model[key] = next
				}
			case 2:
				require.NoError(t, c.Delete(key))
				delete(model, key)
			case 3:
				_, err := c.Sweep(at(now), r.IntN(5))
				require.NoError(t, err)
			default:
				if live {
					has(t, c, at(now), key, old.value)
				} else {
					absent(t, c, at(now), key)
				}
			}
		}
		verify(t, f.handle)
	}
}

func TestCacheConcurrently(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "c.db"), Options{})
	c := newCache(t, f, "c")
	var won atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 30 {
				if c.Add(at(0), fmt.Sprint("one", i), nil, 0) == nil {
					won.Add(1)
				}
				key := fmt.Sprint(w, "/", i)
				if err := c.SetAll(at(0), Item{key, []byte(key), 0}, Item{key + "x", nil, time.Second}); err != nil {
					t.Error(err)
				}
				if v, err := c.Get(at(0), key); err != nil || string(v) != key {
					t.Error(key, v, err)
				}
				if _, err := c.Sweep(at(int64(i)), 3); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 30, won.Load(), "each key was added once")
	verify(t, f.handle)
}

func TestCacheFailedWrite(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "c.db"), Options{NoSync: true})
	c := newCache(t, f, "c")
	f.fail = failing(false)
	require.ErrorIs(t, c.Set(at(0), "k", nil, 0), errInjected)
	f.fail = failure{}
	absent(t, c, at(0), "k")
	require.NoError(t, c.Set(at(0), "k", nil, 0))
}

// BenchmarkCacheSet shows what waiting together saves.
func BenchmarkCacheSet(b *testing.B) {
	for _, workers := range []int{1, 16} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			f := open(b, filepath.Join(b.TempDir(), "c.db"), Options{})
			c := newCache(b, f, "c")
			value := make([]byte, 200)
			var n atomic.Int64
			b.SetParallelism(max(1, workers/2))
			b.ReportAllocs()
			set := func() {
				if err := c.Set(at(0), fmt.Sprint(n.Add(1)%100_000), value, time.Hour); err != nil {
					b.Error(err)
				}
			}
			if workers == 1 {
				for b.Loop() {
					set()
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					set()
				}
			})
		})
	}
}

func BenchmarkCacheGet(b *testing.B) {
	f := open(b, filepath.Join(b.TempDir(), "c.db"), Options{NoSync: true})
	c := newCache(b, f, "c")
	var items []Item
	for i := range 100_000 {
		items = append(items, Item{Key: fmt.Sprint(i), Value: make([]byte, 200)})
	}
	require.NoError(b, c.SetAll(at(0), items...))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := c.Get(at(0), items[i%len(items)].Key); err != nil {
			b.Fatal(err)
		}
	}
}
