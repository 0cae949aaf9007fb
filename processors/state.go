package processors

import (
	"context"
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/statecache"
)

// cacheKey is under which the constructor of a bbolt cache leaves its file in
// the shared generic values: a cache is handed out as a wrapper, so that its type
// cannot be seen.
type cacheKey struct{ label string }

// cacheSettings is how a bbolt cache opens its file.
type cacheSettings struct {
	path    string
	options statecache.Options
}

// leased is a part of a state file that a host holds.
type leased struct {
	file  *statecache.File
	space *statecache.Space
}

// lease opens the file behind a cache label and takes the part of it that
// belongs to name. It gives nil for state in memory.
func lease(res *service.Resources, state, name string) (*leased, error) {
	if state == memory || state == "" {
		if res.HasCache(memory) {
			return nil, fmt.Errorf("state: %q is the word for state in memory, and a cache has it as its label: rename the cache", memory)
		}
		return nil, nil
	}
	if dryRun() {
		return nil, nil
	}
	settings, err := settingsOf(res, state)
	if err != nil {
		return nil, err
	}
	file, err := statecache.Open(settings.path, settings.options)
	if err != nil {
		return nil, fmt.Errorf("state %q: %w", state, err)
	}
	space, err := file.Lease(name)
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("state %q: %w", state, err)
	}
	return &leased{file: file, space: space}, nil
}

func settingsOf(res *service.Resources, label string) (cacheSettings, error) {
	if !res.HasCache(label) {
		return cacheSettings{}, fmt.Errorf("state: there is no cache resource %q: add one under cache_resources with `label: %s` and `bbolt: { path: ./state/state.db }`, or use the word memory", label, label)
	}
	// Caches are made when they are first asked for.
	if err := res.AccessCache(context.Background(), label, func(service.Cache) {}); err != nil {
		return cacheSettings{}, fmt.Errorf("state %q: %w", label, err)
	}
	v, _ := res.GetGeneric(cacheKey{label})
	settings, ok := v.(cacheSettings)
	if !ok {
		return cacheSettings{}, fmt.Errorf("state: cache %q is not a bbolt cache: state needs one, since it is committed together with positions and rows", label)
	}
	return settings, nil
}

// release gives the part back.
func (l *leased) release() {
	if l == nil {
		return
	}
	_ = l.space.Close()
	_ = l.file.Close()
}

// size is the size of the file in bytes.
func (l *leased) size() (int64, error) { return l.file.Size() }
