package processors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/connect-windowed/connect-windowed/processors"
)

// mistake is a configuration that must not start.
type mistake struct {
	name  string
	conf  string   // resources, the one labelled `it` is asked for
	parts []string // of the message: field, value, what is allowed, the remedy
	blind bool     // lint cannot see it
	loose bool     // Benthos sees it in lint alone, and leaves it out at the start
}

// On its own, in a processor host, and in an input host.
func alone(op string) string { return "processor_resources: [ { label: it, " + op + " } ]" }

func inHost(list string, fields ...string) string {
	if !hasField(fields, "state") {
		fields = append(fields, "state: memory")
	}
	return fmt.Sprintf("processor_resources:\n  - { label: it, windowed: { %s, processors: [ %s ] } }\n", strings.Join(fields, ", "), list)
}

// resource adds a processor resource labelled far to inHost.
func resource(conf string) string { return "  - { label: far, " + conf[1:] + "\n" }

func inInput(list string, fields ...string) string {
	if !hasField(fields, "state") {
		fields = append(fields, "state: memory")
	}
	if !hasField(fields, "input") {
		fields = append(fields, "input: { generate: { mapping: root = 1 } }")
	}
	return fmt.Sprintf("input_resources: [ { label: it, windowed: { %s, processors: [ %s ] } } ]", strings.Join(fields, ", "), list)
}

func hasField(fields []string, name string) bool {
	for _, f := range fields {
		if strings.HasPrefix(f, name+":") {
			return true
		}
	}
	return false
}

const (
	mark  = "{ watermark: { event_time: this.ts } }"
	count = "{ tumbling_window: { size: 5m, aggregates: { n: count() } } }"
)

func wm(fields string) string { return alone("watermark: { " + fields + " }") }

func win(fields string) string {
	if !strings.Contains(fields, "size:") {
		fields += ", size: 5m"
	}
	if !strings.Contains(fields, "aggregates:") {
		fields += ", aggregates: { n: count() }"
	}
	return alone("tumbling_window: { " + fields + " }")
}

var mistakes = []mistake{
	// the chain
	{name: "no watermark", conf: inHost(count), parts: []string{`tumbling_window "tumbling_window"`, "no watermark upstream", "put a watermark before it in the same processors list"}},
	{name: "no watermark in the input", conf: inInput(count), parts: []string{"no watermark upstream"}},
	{name: "watermark behind", conf: inHost(count + "," + mark), parts: []string{"no watermark upstream"}},
	{name: "no event time", conf: inHost("{ watermark: {} }, " + count), parts: []string{`watermark "watermark"`, "event_time is missing", "second watermark"}},
	{name: "a source without event time", conf: inHost(`{ watermark: { sources: { a: { when: "true" } } } }`), parts: []string{"event_time is missing"}},
	{name: "two of one name", conf: inHost(mark + "," + count + ", " + count), parts: []string{`tumbling_window "tumbling_window"`, "duplicate name", "set a different name"}},
	{name: "two watermarks of one name", conf: inHost(mark + "," + mark), parts: []string{`watermark "watermark"`, "duplicate name", "set a different name"}},
	{name: "state in a host", conf: inHost(mark + ", { tumbling_window: { state: memory, size: 5m, aggregates: { n: count() } } }"), parts: []string{`tumbling_window "tumbling_window"`, "state belongs to the host", "remove it from the operator"}},
	{name: "position in a host", conf: inHost("{ watermark: { event_time: this.ts, position: none } }"), parts: []string{`watermark "watermark"`, "position belongs to the host", "remove it from the operator"}},
	{name: "no processors", conf: inHost(""), parts: []string{"processors: the list is empty", "put a watermark"}},
	{name: "no processors in the input", conf: inInput(""), parts: []string{"processors: the list is empty"}},
	{name: "in try", conf: inHost(mark + ", { try: [ " + count + " ] }"), parts: []string{"processors: tumbling_window is nested", "index 1", "put it directly into the list"}},
	{name: "in catch", conf: inHost(mark + ", { catch: [ " + count + " ] }"), parts: []string{"tumbling_window is nested"}},
	{name: "in switch", conf: inHost(mark + ", { switch: [ { check: this.a, processors: [ " + count + " ] } ] }"), parts: []string{"tumbling_window is nested"}},
	{name: "in branch", conf: inHost(mark + ", { branch: { processors: [ " + count + " ] } }"), parts: []string{"tumbling_window is nested"}},
	{name: "in for_each", conf: inHost("{ for_each: [ " + mark + " ] }, " + mark), parts: []string{"watermark is nested", "index 0"}},
	{name: "in parallel", conf: inHost(mark + ", { parallel: { processors: [ { try: [ " + count + " ] } ] } }"), parts: []string{"tumbling_window is nested"}},
	{name: "in workflow", conf: inHost(mark + ", { workflow: { order: [ [ a ] ], branches: { a: { processors: [ " + count + " ] } } } }"), parts: []string{"tumbling_window is nested"}},
	{name: "in the input host", conf: inInput(mark + ", { try: [ " + count + " ] }"), parts: []string{"tumbling_window is nested"}},
	{name: "behind a resource", conf: inHost(mark+", { resource: far }") + resource(count), parts: []string{"tumbling_window is nested", "index 1"}, blind: true},
	{name: "behind a resource, deeper", conf: inHost(mark+", { try: [ { resource: far } ] }") + resource("{ try: [ "+count+" ] }"), parts: []string{"tumbling_window is nested", "index 1"}, blind: true},
	{name: "host in host", conf: inHost(mark + ", { windowed: { state: memory, processors: [ " + mark + " ] } }"), parts: []string{"windowed is nested", "index 1"}},
	{name: "host in try in host", conf: inInput(mark + ", { try: [ { windowed: { state: memory, processors: [ " + mark + " ] } } ] }"), parts: []string{"windowed is nested"}},
	{name: "input host in input host", conf: inInput(mark, "input: { windowed: { state: memory, input: { generate: { mapping: root = 1 } }, processors: [ "+mark+" ] } }"), parts: []string{"input: a windowed host stands inside of another one", "one processors list"}, blind: true},
	{name: "host behind the input of a host", conf: inInput(mark, "input: { test_ended: {}, processors: [ { windowed: { state: memory, processors: [ "+mark+" ] } } ] }"), parts: []string{"input: a windowed host stands inside of another one"}, blind: true},
	{name: "host in a broker in a host", conf: inInput(mark, "input: { broker: { inputs: [ { windowed: { state: memory, input: { generate: { mapping: root = 1 } }, processors: [ "+mark+" ] } } ] } }"), parts: []string{"input: a windowed host stands inside of another one"}, blind: true},

	// hosts
	{name: "empty state", conf: inHost(mark, `state: ""`), parts: []string{"state: must not be empty", "bbolt", "memory"}},
	{name: "empty name", conf: inHost(mark, `name: ""`), parts: []string{"name: must not be empty"}},
	{name: "budget of state in memory", conf: inHost(mark, "memory_budget: 64MiB"), parts: []string{"memory_budget: state in memory", "bbolt cache", "remove memory_budget"}},
	{name: "budget of state in memory in the input", conf: inInput(mark, "memory_budget: 64MiB"), parts: []string{"memory_budget: state in memory"}},
	{name: "budget that is no number of bytes", conf: inInput(mark, "memory_budget: a lot", "state: s"), parts: []string{`memory_budget: "a lot"`, "not a number of bytes above 0", "64MiB"}},
	{name: "budget of nothing", conf: inInput(mark, "memory_budget: 0MiB", "state: s"), parts: []string{`memory_budget: "0MiB"`, "above 0"}},
	{name: "budget of an operator in memory", conf: alone("watermark_dedupe: { key: this.id, within: 1h, memory_budget: 64MiB }"), parts: []string{`watermark_dedupe "watermark_dedupe"`, "memory_budget: state in memory"}},
	{name: "budget of an operator in a host", conf: inHost(mark + ", { watermark_dedupe: { key: this.id, state: s, memory_budget: 64MiB } }"), parts: []string{`watermark_dedupe "watermark_dedupe"`, "belongs to the host"}},
	{name: "horizon", conf: inHost(mark, "position_horizon: -1m"), parts: []string{"position_horizon: -1m", "negative", "0s or more"}},
	{name: "horizon of no unit", conf: inInput(mark, "position_horizon: 5"), parts: []string{"position_horizon:", "5", "not a duration", "30s"}},
	{name: "position word", conf: inHost(mark, "position: kafka"), parts: []string{`position: "kafka"`, "ordinal, none", "object of partition and offset"}},
	{name: "position of other fields", conf: inHost(mark, "position: { partition: this.p, ofset: this.o }"), parts: []string{"position:", "partition and offset", "Bloblang"}},
	{name: "position of a field too many", conf: inInput(mark, "position: { partition: this.p, offset: this.o, part: this.i }"), parts: []string{"position:", "partition and offset"}},
	{name: "position of a field too few", conf: inInput(mark, "position: { offset: this.o }"), parts: []string{"position:", "partition and offset"}},
	{name: "position of numbers", conf: inHost(mark, "position: { partition: 0, offset: 1 }"), parts: []string{"position:", "Bloblang expression"}},
	{name: "position as a list", conf: inHost(mark, "position: [ this.p, this.o ]"), parts: []string{"position:", "partition and offset"}},
	{name: "position as a number", conf: inHost(mark, "position: 7"), parts: []string{"position:", "7", "ordinal, none"}},
	{name: "position as a truth value", conf: inHost(mark, "position: false"), parts: []string{"position:", "false", "ordinal, none"}},
	{name: "ordinal in a processor", conf: inHost(mark, "position: ordinal"), parts: []string{"position: ordinal", "input"}},
	{name: "ordinal of an operator", conf: win("position: ordinal"), parts: []string{"position: ordinal", "input"}},
	{name: "bad expression of an operator's position", conf: win(`position: { partition: "this.(", offset: this.o }`), parts: []string{"position.partition", "line 1 column"}},
	{name: "bad expression of a position", conf: inHost(mark, `position: { partition: "this.(", offset: this.o }`), parts: []string{"position.partition", "line 1 column", "not a Bloblang expression"}},
	{name: "bad offset of a position", conf: inInput(mark, `position: { partition: this.p, offset: "this.o +" }`), parts: []string{"position.offset", "line 1 column"}},
	{name: "on_end", conf: inInput(mark, "on_end: drop"), parts: []string{"drop"}},

	// state
	{name: "no such cache", conf: inHost(mark, "state: nowhere"), parts: []string{`state: there is no cache resource "nowhere"`, "cache_resources", "label: nowhere", "memory"}, blind: true},
	{name: "cache of another kind", conf: inHost(mark, "state: other") + "\ncache_resources: [ { label: other, memory: {} } ]", parts: []string{`state: cache "other" is not a bbolt cache`}, blind: true},
	{name: "cache labelled memory", conf: inInput(mark) + "\ncache_resources: [ { label: memory, memory: {} } ]", parts: []string{`state: "memory" is the word`, "rename the cache"}, blind: true},
	{name: "no such cache of an operator", conf: win("state: nowhere"), parts: []string{`state: there is no cache resource "nowhere"`}, blind: true},
	{name: "empty state of an operator", conf: win(`state: ""`), parts: []string{"tumbling_window", "state: must not be empty"}},
	{name: "path of a cache", conf: "cache_resources: [ { label: it, bbolt: { path: '' } } ]", parts: []string{"path: must not be empty"}},
	{name: "ttl of a cache", conf: "cache_resources: [ { label: it, bbolt: { path: x.db, default_ttl: never } } ]", parts: []string{"default_ttl", "never", "not a duration"}},
	{name: "lock_timeout of a cache", conf: "cache_resources: [ { label: it, bbolt: { path: x.db, lock_timeout: -1s } } ]", parts: []string{"lock_timeout: -1s", "negative"}},
	{name: "sweep_interval of a cache", conf: "cache_resources: [ { label: it, bbolt: { path: x.db, sweep_interval: 60 } } ]", parts: []string{"sweep_interval", "60", "not a duration"}},

	// watermark
	{name: "delay", conf: wm("event_time: this.ts, delay: 3x"), parts: []string{"delay:", "3x", "not a duration", "30s"}},
	{name: "negative delay", conf: wm("event_time: this.ts, delay: -3m"), parts: []string{"delay: -3m", "negative", "0s or more"}},
	{name: "delay without unit", conf: wm("event_time: this.ts, delay: 3"), parts: []string{"delay:", "3", "not a duration"}},
	{name: "empty delay", conf: wm(`event_time: this.ts, delay: ""`), parts: []string{"delay:", "not a duration"}},
	{name: "delay beyond all", conf: wm(`event_time: this.ts, delay: 3000000h`), parts: []string{"delay:", "3000000h"}},
	{name: "idle_timeout", conf: wm("event_time: this.ts, idle_timeout: -1ns"), parts: []string{"idle_timeout: -1ns", "negative"}},
	{name: "max_ahead", conf: wm("event_time: this.ts, max_ahead: soon"), parts: []string{"max_ahead:", "soon", "not a duration"}},
	{name: "startup_grace", conf: wm("event_time: this.ts, startup_grace: -1s"), parts: []string{"startup_grace: -1s", "negative"}},
	{name: "unit", conf: wm("event_time: this.ts, unit: minutes"), parts: []string{"minutes"}},
	{name: "policy", conf: wm("event_time: this.ts, policy: median"), parts: []string{"median"}},
	{name: "empty event_time", conf: wm(`event_time: " "`), parts: []string{"event_time: must not be empty", "Bloblang expression"}},
	{name: "bad event_time", conf: wm(`event_time: "this.ts.("`), parts: []string{"event_time:", `"this.ts.("`, "line 1 column 10", "not a Bloblang expression"}},
	{name: "bad event_time on its second line", conf: wm(`event_time: "let a = 1\nroot = this.nope("`), parts: []string{"event_time:", "line 2 column"}},
	{name: "unknown method", conf: wm(`event_time: this.ts.no_such_method()`), parts: []string{"event_time:", "no_such_method"}},
	{name: "bad partition", conf: wm(`event_time: this.ts, partition: "@("`), parts: []string{"partition:", "line 1 column"}},
	{name: "no partitions", conf: wm(`event_time: this.ts, partitions: 0`), parts: []string{"partitions: 0", "list of names", "count of 1 or more"}},
	{name: "negative partitions", conf: wm(`event_time: this.ts, partitions: -3`), parts: []string{"partitions: -3", "count of 1 or more"}},
	{name: "half a partition", conf: wm(`event_time: this.ts, partitions: 2.5`), parts: []string{"partitions: 2.5"}},
	{name: "partitions as a text", conf: wm(`event_time: this.ts, partitions: all`), parts: []string{"partitions: all"}},
	{name: "an empty list of partitions", conf: wm(`event_time: this.ts, partitions: []`), parts: []string{"partitions:", "list of names"}},
	{name: "partitions as an object", conf: wm(`event_time: this.ts, partitions: { a: 1 }`), parts: []string{"partitions:", "list of names"}},
	{name: "null in partitions", conf: wm(`event_time: this.ts, partitions: [ a, null ]`), parts: []string{"partitions:", "list of names"}},
	{name: "a list in partitions", conf: wm(`event_time: this.ts, partitions: [ [ a ] ]`), parts: []string{"partitions:", "list of names"}},
	{name: "a partition twice", conf: wm(`event_time: this.ts, partitions: [ a, 1, "1" ]`), parts: []string{"partitions:", `"1"`, "twice"}},
	{name: "partitions of none", conf: wm(`event_time: this.ts, partition: none, partitions: [ a ]`), parts: []string{"partitions:", "partition: none"}},
	{name: "source without when", conf: wm("sources: { a: { event_time: this.ts } }"), parts: []string{"when"}},
	{name: "source with an empty when", conf: wm(`sources: { a: { when: "", event_time: this.ts } }`), parts: []string{"sources.a: when: must not be empty"}},
	{name: "bad when", conf: wm(`sources: { a: { when: "this.", event_time: this.ts } }`), parts: []string{"sources.a.when:", "line 1 column"}},
	{name: "bad event_time of a source", conf: wm(`sources: { a: { when: "true", event_time: "][" } }`), parts: []string{"sources.a.event_time:", "line 1 column"}},
	{name: "delay of a source", conf: wm(`sources: { a: { when: "true", event_time: this.ts, delay: -1s } }`), parts: []string{"delay: -1s", "negative"}},
	{name: "source without a name", conf: wm(`sources: { "": { when: "true", event_time: this.ts } }`), parts: []string{"sources: a source must have a name"}},
	{name: "policy in a source", conf: wm(`sources: { a: { when: "true", event_time: this.ts, policy: max } }`), parts: []string{"policy"}, loose: true},
	{name: "empty name of an operator", conf: wm(`event_time: this.ts, name: ""`), parts: []string{"watermark: name must not be empty"}},

	// windows
	{name: "size 0", conf: win("size: 0s"), parts: []string{"size", "0s", "above 0"}},
	{name: "size 0 without unit", conf: win("size: 0"), parts: []string{"size", "above 0"}},
	{name: "negative size", conf: win("size: -5m"), parts: []string{"size: -5m", "negative"}},
	{name: "size in words", conf: win("size: five minutes"), parts: []string{"size:", "five minutes", "not a duration"}},
	{name: "offset", conf: win("offset: 3"), parts: []string{"offset:", "3", "not a duration"}},
	{name: "late", conf: win("late: keep"), parts: []string{"keep"}},
	{name: "early on its own", conf: win("early: 10s"), parts: []string{`tumbling_window "tumbling_window"`, "early:", "windowed input", "remove early"}, blind: true},
	{name: "early in a processor", conf: inHost(mark + ", { tumbling_window: { size: 5m, early: 10s, aggregates: { n: count() } } }"), parts: []string{`tumbling_window "tumbling_window"`, "early:", "windowed input"}},
	{name: "early sessions in a processor", conf: inHost(mark + ", { session_window: { gap: 5m, early: 10s, aggregates: { n: count() } } }"), parts: []string{`session_window "session_window"`, "early:", "windowed input"}},
	{name: "early updates", conf: inInput(mark + ", { tumbling_window: { size: 5m, early: 10s, output_mode: update, aggregates: { n: count() } } }"), parts: []string{"early: with output_mode update", "remove early"}},
	{name: "windows over early rows", conf: inInput(mark + ", { sliding_window: { size: 5m, slide: 1m, early: 10s, aggregates: { n: count() } } }, " + count), parts: []string{"row key twice", `"sliding_window" revises`, "early"}},
	{name: "unknown function", conf: win("aggregates: { n: cuont() }"), parts: []string{"aggregates.n:", `"cuont"`, "did you mean count?", "sum"}},
	{name: "unclosed aggregate", conf: win(`aggregates: { n: "sum(this.a" }`), parts: []string{"aggregates.n:", "sum(this.a"}},
	{name: "bad argument", conf: win(`aggregates: { n: "sum(this.a.)" }`), parts: []string{"aggregates", "line 1 column"}},
	{name: "bad where", conf: win(`aggregates: { n: "count(where: this.)" }`), parts: []string{"aggregates", "line 1 column"}},
	{name: "no aggregates", conf: win(`aggregates: {}`), parts: []string{"aggregates: there is none", "n: count()"}},
	{name: "empty aggregate", conf: win(`aggregates: { n: "" }`), parts: []string{"aggregates.n: must not be empty"}},
	{name: "nameless aggregate", conf: win(`aggregates: { "": count() }`), parts: []string{"aggregates: an output field must have a name"}},
	{name: "field of group and aggregate", conf: win(`group_by: { n: this.n }`), parts: []string{"aggregates.n: group_by has an output field of that name", "rename"}},
	{name: "reserved aggregate", conf: win(`aggregates: { window_start: count() }`), parts: []string{"aggregates.window_start:", "choose another"}},
	{name: "reserved group", conf: win(`group_by: { window_end: this.a }`), parts: []string{"group_by.window_end:", "choose another"}},
	{name: "bad group", conf: win(`group_by: { k: "this.[" }`), parts: []string{"group_by.k:", `"this.["`, "line 1 column"}},
	{name: "empty group", conf: win(`group_by: { k: "" }`), parts: []string{"group_by.k: must not be empty"}},

	// keyed state
	{name: "no input", conf: strings.Replace(inInput(mark+", "+count, "input: gone"), "input: gone, ", "", 1), parts: []string{"input"}},
	{name: "a text for a bool", conf: inInput("{ watermark: { event_time: this.ts, idle_advance: often } }, " + count), parts: []string{"idle_advance", "often"}},
	{name: "an assignment for a comparison", conf: inInput(mark + ", { tumbling_window: { size: 5m, aggregates: { n: 'count(where: this.n = 1)' } } }"), parts: []string{`"this.n = 1"`, "write == to compare"}},
	{name: "no key", conf: keyedState(`key: ""`), parts: []string{"key: must not be empty", "this.customer"}},
	{name: "bad key", conf: keyedState(`key: "this.["`), parts: []string{"key:", `"this.["`, "line 1 column"}},
	{name: "no on_event", conf: keyedState(`on_event: " "`), parts: []string{"on_event: must not be empty", "root.state"}},
	{name: "bad on_event", conf: keyedState(`on_event: "root.state = this."`), parts: []string{"on_event:", "this.", "not a Bloblang mapping", "line 1"}},
	{name: "bad on_timer", conf: keyedState(`on_timer: "root.state = null\nroot.emit = ["`), parts: []string{"on_timer:", "not a Bloblang mapping", "line 2"}},
	{name: "no ttl", conf: keyedState("ttl: 0s"), parts: []string{"ttl: 0s", "above 0s", "leave it out"}},
	{name: "negative ttl", conf: keyedState("ttl: -1h"), parts: []string{"ttl: -1h", "negative"}},
	{name: "ttl of no unit", conf: keyedState("ttl: 5"), parts: []string{"ttl:", "5", "not a duration"}},
	{name: "keyed state without a watermark", conf: inHost("{ keyed_state: { key: this.k, on_event: root.state = 1 } }"), parts: []string{`keyed_state "keyed_state"`, "no watermark upstream"}},
	{name: "keyed state over revisions", conf: inHost(mark + ", { tumbling_window: { size: 5m, output_mode: update, aggregates: { n: count() } } }, { keyed_state: { key: this.k, on_event: root.state = 1 } }"), parts: []string{`keyed_state "keyed_state"`, "row key twice", "append"}},
}

func keyedState(fields string) string {
	for _, rest := range []string{"key: this.k", "on_event: root.state = 1"} {
		if name, _, _ := strings.Cut(rest, ":"); !strings.Contains(fields, name+":") {
			fields += ", " + rest
		}
	}
	return alone("keyed_state: { " + fields + " }")
}

func TestMistakesEndTheStart(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			err := construct(t, m.conf)
			if m.loose {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			for _, part := range m.parts {
				require.ErrorContains(t, err, part)
			}
			require.NotContains(t, err.Error(), "%!")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// construct makes the resource `it` and gives the error of that.
func construct(t testing.TB, conf string) (err error) {
	t.Helper()
	b := service.NewResourceBuilder()
	b.DisableLinting()
	if err := b.AddYAML(conf); err != nil {
		return err
	}
	res, done, err := b.Build()
	require.NoError(t, err)
	ctx := context.Background()
	switch {
	case res.HasInput("it"):
		err = res.AccessInput(ctx, "it", func(*service.ResourceInput) {})
	case res.HasCache("it"):
		err = res.AccessCache(ctx, "it", func(service.Cache) {})
	default:
		err = res.AccessProcessor(ctx, "it", func(*service.ResourceProcessor) {})
	}
	require.NoError(t, done(ctx))
	return err
}

func TestMistakesAreLinted(t *testing.T) {
	processors.SetDryRun(true)
	defer processors.SetDryRun(false)
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			lints := lintsOf(t, m.conf)
			if m.blind {
				require.Empty(t, lints)
				return
			}
			require.Len(t, lints, 1, "%q", lints)
			for _, part := range m.parts {
				require.Contains(t, lints[0], part)
			}
		})
	}
}

// lintsOf gives what lint says of a configuration.
func lintsOf(t testing.TB, text string) (lints []string) {
	t.Helper()
	found, err := service.GlobalEnvironment().FullConfigSchema("", "").NewStreamConfigLinter().LintYAML([]byte(text))
	require.NoError(t, err)
	for _, l := range found {
		lints = append(lints, l.What)
	}
	return lints
}
