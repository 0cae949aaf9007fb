package drive

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// Meter is the metrics exporter of a test.
type Meter struct {
	mu     sync.Mutex // protects values
	values map[string]int64
}

func newMeter() *Meter { return &Meter{values: map[string]int64{}} }

// key writes a metric as name{label=value,…}, labels in the order of their names.
// The labels path and label, which name the place in the configuration, are left
// out.
func key(name string, labels, values []string) string {
	pairs := map[string]string{}
	for i, label := range labels {
		if label != "path" && label != "label" {
			pairs[label] = values[i]
		}
	}
	var b strings.Builder
	b.WriteString(name + "{")
	for i, label := range slices.Sorted(maps.Keys(pairs)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(label + "=" + pairs[label])
	}
	return b.String() + "}"
}

// Sum adds the values of a metric over its labels, those where all the given
// label=value pairs hold. Found says whether there is one.
func (m *Meter) Sum(name string, where ...string) (sum int64, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, value := range m.values {
		head, labels, _ := strings.Cut(strings.TrimSuffix(key, "}"), "{")
		have := strings.Split(labels, ",")
		if head != name || slices.ContainsFunc(where, func(pair string) bool { return !slices.Contains(have, pair) }) {
			continue
		}
		sum, found = sum+value, true
	}
	return sum, found
}

// Largest is the largest value of a metric over its labels, 0 without one.
func (m *Meter) Largest(name string) (largest int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, value := range m.values {
		if strings.HasPrefix(key, name+"{") {
			largest = max(largest, value)
		}
	}
	return largest
}

// All gives every metric, for messages.
func (m *Meter) All() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.values)
}

func (m *Meter) change(key string, do func(old int64) int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = do(m.values[key])
}

// NewCounterCtor implements service.MetricsExporter.
func (m *Meter) NewCounterCtor(name string, labels ...string) service.MetricsExporterCounterCtor {
	return func(values ...string) service.MetricsExporterCounter { return metric{m, key(name, labels, values)} }
}

// NewTimerCtor implements service.MetricsExporter.
func (m *Meter) NewTimerCtor(name string, labels ...string) service.MetricsExporterTimerCtor {
	return func(values ...string) service.MetricsExporterTimer { return metric{m, key(name, labels, values)} }
}

// NewGaugeCtor implements service.MetricsExporter.
func (m *Meter) NewGaugeCtor(name string, labels ...string) service.MetricsExporterGaugeCtor {
	return func(values ...string) service.MetricsExporterGauge { return metric{m, key(name, labels, values)} }
}

// Close implements service.MetricsExporter.
func (m *Meter) Close(context.Context) error { return nil }

// metric is one value of a Meter: a counter, a timer (the number of timings) or a
// gauge.
type metric struct {
	meter *Meter
	key   string
}

func (c metric) Incr(count int64) {
	c.meter.change(c.key, func(old int64) int64 { return old + count })
}
func (c metric) Timing(int64)    { c.meter.change(c.key, func(old int64) int64 { return old + 1 }) }
func (c metric) Set(value int64) { c.meter.change(c.key, func(int64) int64 { return value }) }
