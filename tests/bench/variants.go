package main

import (
	"bytes"
	"strings"
	"text/template"
	"time"
)

// variant is one job as a configuration.
type variant struct {
	name string
	part part
	text string // template of the configuration, with Path and State, or those of topicConfig
	size int    // of the records of a topic, which is read instead of a file
	// stock: the window follows the wall clock, drops what it cannot keep up with
	// and prints its rows, which are counted.
	stock bool
	keyed *keyed // a stream of keys of its own, see variants_keys.go
	// orders is a stream of orders of its own, see variants_window.go.
	orders *orders
}

// stockWindow is the window of the stock variants, in wall time. Short windows
// suit them: less has to be kept.
const stockWindow = time.Second

// Inside of the host, which refuses nothing, an input needs no list of what it may
// have to send again. A window is compared with the same input without a window, which
// is fast and keeps no refused message, and with one that has the list, as by default.
const (
	batchesOfLines = `{ file: { paths: [ {{.Path}} ], scanner: { lines_batch: {} }, auto_replay_nacks: false } }`
	lineByLine     = `{ file: { paths: [ {{.Path}} ], scanner: { lines: {} } } }`
	lineNoReplay   = `{ file: { paths: [ {{.Path}} ], scanner: { lines: {} }, auto_replay_nacks: false } }`
	topic          = `{ redpanda: { seed_brokers: [ "{{.Broker}}" ], topics: [ {{.Topic}} ], consumer_group: {{.Group}}, auto_replay_nacks: false } }`
	batchesReplay  = `{ file: { paths: [ {{.Path}} ], scanner: { lines_batch: {} } } }`
)

// variants are run in this order.
var variants = []variant{
	{name: "none/lines_batch", part: whole, text: plain(batchesOfLines)},
	{name: "window/lines_batch", part: whole, text: windowed(batchesOfLines)},
	{name: "stock/lines_batch", part: quarter, text: stock(batchesOfLines), stock: true},
	{name: "none/lines", part: quarter, text: plain(lineByLine)},
	{name: "window/lines", part: quarter, text: windowed(lineByLine)},
	{name: "stock/lines", part: quarter, text: stock(lineByLine), stock: true},
	{name: "none/lines/no_replay", part: quarter, text: plain(lineNoReplay)},
	{name: "none/lines_batch/replay", part: whole, text: plain(batchesReplay)},
	{name: "none/kafka/170", size: 170, text: watched(plain(topic))},
	{name: "window/kafka/170", size: 170, text: watched(windowed(topic))},
	{name: "none/kafka/1024", size: 1024, text: watched(plain(topic))},
	{name: "window/kafka/1024", size: 1024, text: watched(windowed(topic))},
}

// ratio compares two variants.
type ratio struct {
	name, of, to string
	floor        float64
}

// ratios compare medians. A floor of 0 is none.
var ratios = []ratio{
	{"window_to_none/lines_batch", "window/lines_batch", "none/lines_batch", 0.70},
	{"window_to_none/lines_batch/replay", "window/lines_batch", "none/lines_batch/replay", 0},
	{"window_to_none/lines", "window/lines", "none/lines", 0},
	{"window_to_stock/lines_batch", "window/lines_batch", "stock/lines_batch", 5},
	{"window_to_stock/lines", "window/lines", "stock/lines", 0},
	{"lines_batch_to_lines/none", "none/lines_batch", "none/lines", 0},
	{"lines_batch_to_lines/window", "window/lines_batch", "window/lines", 0},
	{"window_to_none/kafka/170", "window/kafka/170", "none/kafka/170", 0.70},
	{"window_to_none/kafka/1024", "window/kafka/1024", "none/kafka/1024", 0.70},
}

const common = `
http: { enabled: false }
logger: { level: error }
metrics: { none: {} }
`

// plain reads to nowhere.
func plain(input string) string {
	return common + `
input: ` + input + `
output: { drop: {} }
`
}

// windowed reads through a tumbling window with durable state.
func windowed(input string) string {
	return common + `
input:
  windowed:
    state: state
    ` + positions(input) + `
    input: ` + input + `
    processors:
      - watermark: { event_time: this.order_ts, delay: 3m }
      - tumbling_window:
          size: 5m
          group_by: { page: this.page }
          aggregates:
            orders: count()
            total: sum(this.amount)
output: { drop: {} }
cache_resources:
  - label: state
    bbolt: { path: {{.State}} }
`
}

// positions is the setting of the host: a topic has offsets, lines are counted.
func positions(input string) string {
	if input == topic {
		return ""
	}
	return "position: ordinal"
}

// watched gives a configuration of a process that does not end by itself counters
// to look at, and profiles.
func watched(config string) string {
	return strings.Replace(config, common, `
http: { enabled: true, address: "{{.HTTP}}", debug_endpoints: true }
logger: { level: error }
metrics: { json_api: {} }
`, 1)
}

// stock does the same with what Benthos brings, in windows of the wall clock.
func stock(input string) string {
	return common + `
input: ` + input + `
buffer: { system_window: { size: ` + stockWindow.String() + ` } }
pipeline:
  threads: 1
  processors:
    - group_by_value: { value: '${! json("page") }' }
    - mapping: |
        root = if batch_index() == 0 {
          {
            "window_end": @window_end_timestamp,
            "page": this.page,
            "orders": json("page").from_all().length(),
            "total": json("amount").from_all().sum(),
          }
        } else { deleted() }
output: { stdout: {} }
`
}

// config fills in the paths of a run.
func (v variant) config(in input, state string) ([]byte, error) {
	return v.fill(map[string]string{"Path": in.path, "State": state})
}

func (v variant) fill(values any) ([]byte, error) {
	t, err := template.New(v.name).Parse(v.text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, values)
	return out.Bytes(), err
}
