package processors

import (
	"context"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/statecache"
)

const (
	nameBbolt = "bbolt"
	fieldPath = "path"
)

func bboltSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().
		Summary("Keeps a cache, and the state of windowed hosts, in a bbolt file.").
		Field(service.NewStringField(fieldPath).Description("The file. It is created with its folders where it does not exist."))
}

func newBboltCache(conf *service.ParsedConfig, res *service.Resources) (service.Cache, error) {
	path, err := conf.FieldString(fieldPath)
	if err != nil {
		return nil, err
	}
	res.SetGeneric(cacheKey{res.Label()}, cacheSettings{path: path, options: statecache.Options{}})
	return bboltCache{}, nil
}

func init() { must(service.RegisterCache(nameBbolt, bboltSpec(), newBboltCache)) }

type bboltCache struct{ service.Cache }

func (bboltCache) Close(context.Context) error { return nil }
