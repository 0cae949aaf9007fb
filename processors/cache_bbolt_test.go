package processors_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/processors"
	"github.com/connect-windowed/connect-windowed/statecache"
	"github.com/connect-windowed/connect-windowed/tests/drive"
)

var background = context.Background()

// bbolt is the configuration of a cache in a new folder.
func bbolt(t testing.TB, fields string) (conf, path string) {
	path = filepath.Join(t.TempDir(), "folder", "state.db")
	return fmt.Sprintf("cache_resources:\n  - { label: store, bbolt: { path: %s, %s } }\n", path, fields), path
}

// using gives the cache labelled store.
func using(t testing.TB, res *service.Resources, use func(c service.Cache)) {
	t.Helper()
	require.NoError(t, res.AccessCache(background, "store", use))
}

func requireValue(t testing.TB, c service.Cache, key, want string) {
	t.Helper()
	v, err := c.Get(background, key)
	require.NoError(t, err)
	require.Equal(t, want, string(v))
}

func TestCacheOfBenthos(t *testing.T) {
	for _, dry := range []bool{false, true} {
		t.Run(fmt.Sprintf("dry run %v", dry), func(t *testing.T) {
			processors.SetDryRun(dry)
			defer processors.SetDryRun(false)
			conf, path := bbolt(t, "")
			using(t, resourcesOf(t, conf), func(c service.Cache) { exercise(t, c) })
			_, err := os.Stat(filepath.Dir(path))
			require.Equal(t, dry, os.IsNotExist(err))
		})
	}
}

func exercise(t *testing.T, c service.Cache) {
	_, err := c.Get(background, "a")
	require.ErrorIs(t, err, service.ErrKeyNotFound)
	require.NoError(t, c.Set(background, "a", []byte("1"), nil))
	requireValue(t, c, "a", "1")
	require.NoError(t, c.Set(background, "a", []byte("2"), nil))
	requireValue(t, c, "a", "2")
	require.ErrorIs(t, c.Add(background, "a", []byte("3"), nil), service.ErrKeyAlreadyExists)
	requireValue(t, c, "a", "2")
	require.NoError(t, c.Delete(background, "a"))
	require.NoError(t, c.Delete(background, "a"))
	_, err = c.Get(background, "a")
	require.ErrorIs(t, err, service.ErrKeyNotFound)
	require.NoError(t, c.Add(background, "a", nil, nil))
	requireValue(t, c, "a", "")
	long := strings.Repeat("k", 100_000) // beyond what bbolt takes as a key
	for _, key := range []string{"", "\x00", "\xff", long, long + "x"} {
		require.NoError(t, c.Set(background, key, []byte(key), nil))
	}
	for _, key := range []string{"", "\x00", "\xff", long, long + "x"} {
		requireValue(t, c, key, key)
	}
	v, err := c.Get(background, long)
	require.NoError(t, err)
	v[0] = 'X' // the caller's own
	requireValue(t, c, long, long)

	brief, forever, negative := time.Nanosecond, time.Duration(0), time.Duration(-1)
	require.NoError(t, c.Set(background, "brief", []byte("x"), &brief))
	_, err = c.Get(background, "brief")
	require.ErrorIs(t, err, service.ErrKeyNotFound)
	require.NoError(t, c.Add(background, "brief", []byte("y"), &forever), "what has expired is not there")
	requireValue(t, c, "brief", "y")
	require.NoError(t, c.Set(background, "negative", []byte("z"), &negative))
	requireValue(t, c, "negative", "z")
}

func TestCacheDefaultTTL(t *testing.T) {
	for _, dry := range []bool{false, true} {
		processors.SetDryRun(dry)
		defer processors.SetDryRun(false)
		conf, _ := bbolt(t, "default_ttl: 1ns")
		using(t, resourcesOf(t, conf), func(c service.Cache) {
			require.NoError(t, c.Set(background, "a", []byte("1"), nil))
			_, err := c.Get(background, "a")
			require.ErrorIs(t, err, service.ErrKeyNotFound)
			long := time.Hour
			require.NoError(t, c.Set(background, "a", []byte("1"), &long))
			requireValue(t, c, "a", "1")
		})
	}
}

// Of those who add one key at once, one is told that it was first.
func TestCacheAddsOnce(t *testing.T) {
	conf, _ := bbolt(t, "")
	using(t, resourcesOf(t, conf), func(c service.Cache) {
		for round := range 5 {
			var first atomic.Int64
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					switch err := c.Add(background, fmt.Sprint(round), []byte(fmt.Sprint(i)), nil); {
					case err == nil:
						first.Add(1)
					case !errors.Is(err, service.ErrKeyAlreadyExists):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 1, first.Load())
		}
	})
}

// Entries outlive the process, and the space of expired ones is used again.
func TestCacheOutlivesItsProcess(t *testing.T) {
	conf, path := bbolt(t, "sweep_interval: 5ms, default_ttl: 1ns")
	value := make([]byte, 64<<10)
	size := func() int64 {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Size()
	}
	forever := time.Duration(0)
	for run := range 3 {
		b := service.NewResourceBuilder()
		require.NoError(t, b.AddYAML(conf))
		res, done, err := b.Build()
		require.NoError(t, err)
		using(t, res, func(c service.Cache) {
			if run > 0 {
				requireValue(t, c, "kept", fmt.Sprint(run-1))
			}
			require.NoError(t, c.Set(background, "kept", []byte(fmt.Sprint(run)), &forever))
			for i := range 100 {
				require.NoError(t, c.Set(background, fmt.Sprint(run, "/", i), value, nil))
			}
		})
		require.NoError(t, done(background))
	}
	require.Less(t, size(), int64(4<<20), "19 MB were written")
}

// While nothing is written a sweeper frees what has expired.
func TestCacheSweepsWithoutWrites(t *testing.T) {
	conf, path := bbolt(t, "sweep_interval: 1ms")
	using(t, resourcesOf(t, conf), func(c service.Cache) {
		brief := 20 * time.Millisecond
		for i := range 20 {
			require.NoError(t, c.Set(background, fmt.Sprint(i), []byte("x"), &brief))
		}
	})
	require.Eventually(t, func() bool { // a copy of the file holds nothing that a later sweep would find
		copied := filepath.Join(t.TempDir(), "copy.db")
		require.NoError(t, drive.Snapshot(path, copied))
		f, err := statecache.Open(copied, statecache.Options{})
		require.NoError(t, err)
		c, err := f.Cache("store")
		require.NoError(t, err)
		n, err := c.Sweep(time.Now().Add(time.Hour), 100)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.NoError(t, f.Close())
		return n == 0
	}, patience, 10*time.Millisecond)
}

// What Benthos builds on a cache works on this one, beside the state of a host in
// the same file, and after a restart.
func TestComponentsOverTheCache(t *testing.T) {
	conf, _ := bbolt(t, "")
	var seen, out []string
	for run := range 2 {
		probe := &processor{process: func(_ context.Context, batch service.MessageBatch) ([]service.MessageBatch, error) {
			seen = append(seen, payloads(batch)...)
			return []service.MessageBatch{batch}, nil
		}}
		sink := &output{write: func(_ context.Context, batch service.MessageBatch) error {
			out = append(out, payloads(batch)...)
			return nil
		}}
		require.NoError(t, runStream(t, fmt.Sprintf(`
input: %s
pipeline:
  threads: 1
  processors:
    - dedupe: { cache: store, key: '${! json("k") }' }
    - cached: { cache: store, key: 'c${! json("g") }', processors: [ { mapping: 'root = {"t": this.t, "made": %d}' } ] }
    - %s
    - windowed:
        state: store
        position: none
        processors: [ { watermark: { event_time: this.t } }, { tumbling_window: { size: 10s, aggregates: { n: count() } } } ]
output: %s
%s`, inputOf(t, batches(nil, texts(`{"k":"a","g":1,"t":1}`, `{"k":"a","g":1,"t":1}`, `{"k":"b","g":1,"t":1}`), texts(fmt.Sprintf(`{"k":"run %d","g":2,"t":5}`, run)), texts(fmt.Sprintf(`{"k":"end %d","g":"end %d","t":%d}`, run, run, run*20)))), run, processorOf(t, probe), outputOf(t, sink), conf)))
	}
	require.Equal(t, []string{
		`{"made":0,"t":1}`, `{"made":0,"t":1}`, `{"made":0,"t":5}`, `{"made":0,"t":0}`,
		`{"made":0,"t":5}`, `{"made":1,"t":20}`, // a and b were there before, g 2 is still cached
	}, seen)
	require.Len(t, out, 1)
	require.JSONEq(t, `{"window_start":"1970-01-01T00:00:00Z","window_end":"1970-01-01T00:00:10Z","n":5}`, out[0])
}

// A batch is written at once, and a cache that was closed does not open its file
// again.
func TestCacheTakesBatchesAndCloses(t *testing.T) {
	conf, path := bbolt(t, "")
	require.NoError(t, runStream(t, fmt.Sprintf(`
input: %s
output: { cache: { target: store, key: '${! json("k") }', ttl: 1h } }
%s`, inputOf(t, batches(nil, texts(`{"k":"a"}`, `{"k":"b"}`, `{"k":"a","n":2}`))), conf)))
	b := service.NewResourceBuilder()
	require.NoError(t, b.AddYAML(conf))
	res, done, err := b.Build()
	require.NoError(t, err)
	var late service.Cache
	using(t, res, func(c service.Cache) {
		requireValue(t, c, "a", `{"k":"a","n":2}`)
		requireValue(t, c, "b", `{"k":"b"}`)
		late = c
	})
	require.NoError(t, done(background))
	_, err = late.Get(background, "a")
	require.ErrorIs(t, err, statecache.ErrClosed)
	f, err := statecache.Open(path, statecache.Options{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
