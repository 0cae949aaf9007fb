// Package drive runs pipelines with the product's components inside a test: an
// input whose batches the test hands over, an output that it can make refuse, a
// metrics exporter that it can read and a clock that it can move. It uses the
// product through its YAML surface only.
package drive

import (
	"fmt"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"

	// The stock components that the tests name in their configurations.
	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
)

// Names of the plugins in a configuration. Each has one field, id, which names
// the Pipe that the plugin belongs to.
const (
	feedName  = "test_feed"
	sinkName  = "test_sink"
	meterName = "test_meter"
)

// parts are the plugins of the pipelines that run in this process, by id.
var parts = struct {
	mu    sync.Mutex // protects the maps
	feeds map[string]*Feed
	sinks map[string]*Sink
	meter map[string]*Meter
}{feeds: map[string]*Feed{}, sinks: map[string]*Sink{}, meter: map[string]*Meter{}}

func register(id string, feed *Feed, sink *Sink, meter *Meter) {
	parts.mu.Lock()
	defer parts.mu.Unlock()
	parts.feeds[id], parts.sinks[id], parts.meter[id] = feed, sink, meter
}

func forget(id string) {
	parts.mu.Lock()
	defer parts.mu.Unlock()
	delete(parts.feeds, id)
	delete(parts.sinks, id)
	delete(parts.meter, id)
}

func find[T any](from map[string]T, conf *service.ParsedConfig) (part T, err error) {
	id, err := conf.FieldString("id")
	if err != nil {
		return part, err
	}
	parts.mu.Lock()
	defer parts.mu.Unlock()
	part, ok := from[id]
	if !ok {
		return part, fmt.Errorf("id %q belongs to no pipeline of this process", id)
	}
	return part, nil
}

func init() {
	spec := func() *service.ConfigSpec {
		return service.NewConfigSpec().Field(service.NewStringField("id"))
	}
	service.MustRegisterBatchInput(feedName, spec(), func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchInput, error) {
		return find(parts.feeds, conf)
	})
	service.MustRegisterBatchOutput(sinkName, spec(), func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
		sink, err := find(parts.sinks, conf)
		return sink, service.BatchPolicy{}, 1, err
	})
	service.MustRegisterMetricsExporter(meterName, spec(), func(conf *service.ParsedConfig, _ *service.Logger) (service.MetricsExporter, error) {
		return find(parts.meter, conf)
	})
}
