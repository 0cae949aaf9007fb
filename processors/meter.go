package processors

import (
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// labelled are the metrics with an operator as their label.
var labelled = map[string]bool{
	host.LateRows: true, host.InvalidRows: true, host.DuplicateRows: true, host.RowsEmitted: true, host.Watermark: true,
	host.WatermarkLag: true, host.OpenWindows: true, host.Groups: true,
}

// meter implements host.Meter over the metrics of Benthos.
type meter struct {
	metrics  *service.Metrics
	counters map[string]*service.MetricCounter
	gauges   map[string]*service.MetricGauge
	timers   map[string]*service.MetricTimer
}

var _ host.Meter = (*meter)(nil)

func newMeter(m *service.Metrics) *meter {
	return &meter{metrics: m, counters: map[string]*service.MetricCounter{},
		gauges: map[string]*service.MetricGauge{}, timers: map[string]*service.MetricTimer{}}
}

// known gives a metric out of m, made when it is first used.
func known[T any](m map[string]T, name string, make func(name string, labels ...string) T) T {
	v, ok := m[name]
	if !ok {
		if labelled[name] {
			v = make(name, "operator")
		} else {
			v = make(name)
		}
		m[name] = v
	}
	return v
}

func values(name, label string) []string {
	if labelled[name] {
		return []string{label}
	}
	return nil
}

// Count implements host.Meter.
func (m *meter) Count(name string, n int64, label string) {
	known(m.counters, name, m.metrics.NewCounter).Incr(n, values(name, label)...)
}

// Gauge implements host.Meter.
func (m *meter) Gauge(name string, value int64, label string) {
	known(m.gauges, name, m.metrics.NewGauge).Set(value, values(name, label)...)
}

// Took implements host.Meter.
func (m *meter) Took(name string, d time.Duration) {
	known(m.timers, name, m.metrics.NewTimer).Timing(d.Nanoseconds(), values(name, "")...)
}
