package main

import (
	"fmt"
	"os"
)

// keyed is a stream in which most events have a key of their own. The state of an
// operator holds as many keys as an hour of event time brings.
type keyed struct {
	keys  int
	pairs bool // by turns an event and the one of a quarter of an hour ago, else one of a hundred comes again
}

// events is how many there are: the first keys come to their end.
func (k keyed) events() int { return k.keys + k.keys/2 }

const (
	million  = 1_000_000
	millions = 5_000_000
)

// noOperator reads the same events without looking at them.
const noOperator = ""

const dedupeKeys = `
      - watermark: { event_time: this.ts, delay: 1m }
      - watermark_dedupe: { key: this.id, within: 1h }`

const joinKeys = `
      - watermark:
          sources:
            orders: { when: 'this.kind == "order"', event_time: this.ts, delay: 1m }
            payments: { when: 'this.kind == "payment"', event_time: this.ts, delay: 1m }
      - interval_join:
          left: { source: orders, key: this.id }
          right: { source: payments, key: this.id }
          lower: -1h
          upper: 1h`

const stateKeys = `
      - watermark: { event_time: this.ts, delay: 1m }
      - keyed_state:
          key: this.id
          ttl: 1h
          on_event: 'root.state = { "n": (this.state.n | 0) + 1 }'`

// The operators that keep keys, and what they are compared with. Those with five
// million keys, with all of them in memory and with a budget for it, take many minutes:
// they run with BENCH_LARGE=1.
func init() {
	for _, op := range []struct {
		name, processors string
		pairs            bool
	}{{"dedupe", dedupeKeys, false}, {"join", joinKeys, true}, {"keyed_state", stateKeys, false}} {
		none := "none/" + op.name
		addKeys(none+"/1m", keyed{million, op.pairs}, noOperator, "")
		addKeys(op.name+"/1m", keyed{million, op.pairs}, op.processors, "")
		addRatio(op.name+"_to_none/1m", op.name+"/1m", none+"/1m")
		if os.Getenv("BENCH_LARGE") == "1" {
			addKeys(none+"/5m", keyed{millions, op.pairs}, noOperator, "")
			addKeys(op.name+"/5m", keyed{millions, op.pairs}, op.processors, "")
			addKeys(op.name+"/5m/64MiB", keyed{millions, op.pairs}, op.processors, "64MiB")
			addRatio(op.name+"_to_none/5m", op.name+"/5m", none+"/5m")
			addRatio(op.name+"_64MiB_to_unbounded/5m", op.name+"/5m/64MiB", op.name+"/5m")
		}
	}
}

func addKeys(name string, k keyed, processors, budget string) {
	v := variant{name: name, keyed: &k, text: plain(batchesReplay)}
	if processors != noOperator {
		v.text = keeping(processors, budget)
	}
	variants = append(variants, v)
}

func addRatio(name, of, to string) {
	ratios = append(ratios, ratio{name: name, of: of, to: to})
}

// keeping runs operators with durable state.
func keeping(processors, budget string) string {
	if budget != "" {
		budget = "memory_budget: " + budget
	}
	return common + `
input:
  windowed:
    state: state
    position: ordinal
    ` + budget + `
    input: ` + batchesOfLines + `
    processors:` + processors + `
output: { drop: {} }
cache_resources:
  - label: state
    bbolt: { path: {{.State}} }
`
}

// perKey prints what a key takes of the peak memory, beyond that of a process that
// keeps none.
func perKey(peaks map[string][]float64) {
	for _, v := range variants {
		if v.keyed == nil || len(peaks[v.name]) == 0 {
			continue
		}
		if none := peaks[v.without()]; len(none) > 0 && v.without() != v.name {
			fmt.Printf("bytes_per_key %s %.0f\n", v.name, (median(peaks[v.name])-median(none))/float64(v.keyed.keys))
		}
	}
}
