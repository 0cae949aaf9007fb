package processors

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing"
)

// Fields of keyed_state.
const (
	kindKeyed    = "keyed_state"
	fieldOnEvent = "on_event"
	fieldOnTimer = "on_timer"
	fieldKeyTTL  = "ttl"
)

func keyedSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Windowing").
		Summary("Keeps a state for each key, with Bloblang that runs for every row and for timers: streaks, state machines, alerts when somebody falls silent.").
		Description(``+"`on_event`"+` runs for each row that is in time, in the order of arrival, and `+"`on_timer`"+` for each timer that fires. The rows themselves do not go on: what the mappings emit comes out. Both see

- `+"`this.key`"+`: the key
- `+"`this.state`"+`: the state of the key as a mapping has left it, null where it has none
- `+"`this.watermark`"+`: W as it was before the batch (`+"`on_event`"+`) or as it is after it (`+"`on_timer`"+`), null while it is unset

`+"`on_event`"+` also sees `+"`this.event`"+`, `+"`this.event_time`"+` and the metadata of the message, and `+"`on_timer`"+` sees `+"`this.timer`"+` with its `+"`name`"+` and `+"`at`"+`. Times are numbers of seconds since 1970, good to a microsecond. The mappings set

- `+"`root.state`"+`: the new state, any value. Left unset (or `+"`deleted()`"+`) the state stays; null deletes it, and the timers that were set before.
- `+"`root.emit`"+`: a list of rows to put out. What the mapping has set before is there to read: `+"`root.emit = [ { \"n\": root.state.n } ]`"+`
- `+"`root.timers`"+`: a list of `+"`{ \"name\": ..., \"at\": ... }`"+` to add to the timers of the key. One of the same name takes the place of the old one. With `+"`\"processing\": true`"+` it follows the wall clock instead of event time.

A batch is applied before its timers: first all rows, then the timers with `+"`at <= W`"+` as it is after the batch, in the order (time, key, registration), then those of the wall clock. A timer that is set in the past fires with its batch. A timer that `+"`on_timer`"+` sets must be later than the one that fires, or, where one follows event time and the other the wall clock, later than what its own clock shows. The `+"`windowed`"+` input wakes up for timers of the wall clock; as a processor they fire with the next batch.

A row whose `+"`on_event`"+` fails goes on with the error, and leaves no trace in the state. Where `+"`on_timer`"+` fails, the timer is gone and the state is as before, and a row of the key and the timer comes out with the error. A timer that is not later than the one that sets it is not set, and such a row says so; the rest of that mapping counts.

Rows older than the watermark are late, as everywhere. The result depends on the order in which rows arrive, as far as the mappings do: sort out in them what comes out of order. A mapping should depend on nothing but what it sees; a step that a crash interrupts runs again.

Emitted rows have the time of their row or timer, or the watermark before the batch if that is later. They are delivered at least once. A row that comes twice, after a crash, has the same `+"`windowed_row_id`"+`.

State grows with the keys: bound it by deleting it in `+"`on_timer`"+`, or with `+"`ttl`"+`. At the end of the input with `+"`on_end: flush`"+` the timers that exist fire, those of the wall clock too; timers that are set then do not.`).
		Example("Customers who went quiet", "Counts the orders of each customer, and says so when none has come for ten minutes.", `
pipeline:
  threads: 1
  processors:
    - watermark:
        event_time: this.at
        delay: 1m
    - keyed_state:
        key: this.customer
        on_event: |
          root.state = { "orders": (this.state.orders | 0) + 1 }
          root.timers = [ { "name": "quiet", "at": this.event_time + 600 } ]
        on_timer: |
          root.emit = [ { "customer": this.key, "orders": this.state.orders, "event": this.timer.name } ]
          root.state = null
`).
		Field(service.NewStringField(fieldKey).Example("this.customer").
			Description("A Bloblang expression. Rows with the same value share a state; null and missing are one key, 1 and 1.0 are one, \"1\" is another.")).
		Field(service.NewStringField(fieldOnEvent).Description("The Bloblang mapping for each row.")).
		Field(service.NewStringField(fieldOnTimer).Optional().Description("The Bloblang mapping for each timer that fires. Without it there can be no timers.")).
		Field(durationField(fieldKeyTTL, "How long after its last row, in event time, a key is dropped with its timers: when W has reached its largest event time plus this. Nothing runs then. Without it a key stays until a mapping deletes it.").Optional().Example("24h")).
		Field(lateField()).
		Fields(commonFields()...)
}

// errTTL says that a key would not outlive its own row.
var errTTL = errors.New("use a duration above 0s, such as 24h, or leave it out to keep keys until a mapping deletes them")

// parseKeyed reads the configuration of a keyed state.
func parseKeyed(conf *service.ParsedConfig) (*operator, error) {
	op, err := parseCommon(conf, kindKeyed)
	if err != nil {
		return nil, err
	}
	cfg, err := parseKeyedConfig(conf, op.name)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	k := windowing.NewKeyed(cfg)
	op.stage.Operator, op.stage.Definition = k, k.Definition()
	op.compile = compileKeyed(cfg.Key)
	op.bind = func(p *program) windowing.Binding { return &keyedBinding{program: p} }
	return op, nil
}

func parseKeyedConfig(conf *service.ParsedConfig, name string) (cfg windowing.KeyedConfig, err error) {
	cfg.Name = name
	code := &keyedCode{}
	for _, f := range []struct {
		field, example string
		text           *string
		exec           **bloblang.Executor
	}{
		{fieldKey, "this.customer", &cfg.Key, nil},
		{fieldOnEvent, `root.state = (this.state | 0) + 1`, &cfg.OnEvent, &code.onEvent},
		{fieldOnTimer, `root.emit = [ { "key": this.key } ]`, &cfg.OnTimer, &code.onTimer},
	} {
		if f.field == fieldOnTimer && !conf.Contains(f.field) {
			continue
		}
		if *f.text, err = conf.FieldString(f.field); err != nil {
			return cfg, err
		}
		if strings.TrimSpace(*f.text) == "" {
			return cfg, fmt.Errorf("%s: must not be empty: give Bloblang, such as %s", f.field, f.example)
		}
		if f.exec == nil {
			continue
		}
		if *f.exec, err = bloblang.GlobalEnvironment().Parse(*f.text); err != nil {
			return cfg, mappingError(f.field, *f.text, err)
		}
	}
	if cfg.TTL, err = parseDuration(conf, 0, fieldKeyTTL); err != nil {
		return cfg, err
	}
	if conf.Contains(fieldKeyTTL) && cfg.TTL == 0 {
		return cfg, fmt.Errorf("%s: 0s is not allowed: %w", fieldKeyTTL, errTTL)
	}
	late, err := parseOption(conf, fieldLate, "drop", "pass")
	cfg.PassLate, cfg.Evaluator = late == "pass", code
	return cfg, err
}

// mappingError says where a mapping is not Bloblang.
func mappingError(field, text string, err error) error {
	var parse *bloblang.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("%s: %.200q is not a Bloblang mapping, line %d column %d: %w", field, text, parse.Line, parse.Column, parse)
	}
	return fmt.Errorf("%s: %.200q is not a Bloblang mapping: %w", field, text, err)
}

func init() { register(kindKeyed, keyedSpec(), parseKeyed) }
