package processors

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// Fields of watermark_dedupe.
const (
	kindDedupe         = "watermark_dedupe"
	fieldWithin        = "within"
	fieldWithEventTime = "with_event_time"
	fieldKeep          = "keep"
	fieldDuplicates    = "duplicates"
)

func dedupeSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Windowing").
		Summary("Lets one message of each key pass, and remembers the key for a while of event time: webhooks that are sent again, events that a producer retries.").
		Description(`The first message of a key passes as it is. The key is remembered until the watermark has reached its event time plus `+"`within`"+`, however many duplicates come; messages of that key are duplicates meanwhile. Two messages less than `+"`within`"+` apart are never both let through. Whether one at least `+"`within`"+` after the first is a duplicate depends on how far the watermark has come. A null key is never a duplicate. A message older than the watermark is late, whether its key is known or not.

With `+"`with_event_time`"+` the event time is a part of the key, which is remembered until the watermark has passed that time: less state, but a retry that is stamped anew is no duplicate.

With `+"`keep: last`"+` nothing passes on arrival. When the key is forgotten, the message with the largest event time comes out, the one that came later where there are two; operators behind hear a watermark that is held back by `+"`within`"+` (not with the event time in the key).

**A message is never lost because its key was remembered and its delivery failed.** The key, the position of the message and the message itself are committed together. What an output refuses is delivered again from the state, and a message that its source sends again is recognised by its position, not taken for a duplicate of itself. The `+"`dedupe`"+` processor of Connect adds the key to a cache and then hopes. In a list of processors this needs messages with positions, or `+"`position`"+`; the `+"`windowed`"+` input needs them for redeliveries after a crash only.

`+"`windowed_row_key`"+` consists of the key, the event time and the number under which the message arrived.

State grows with the keys that are remembered, and with `+"`keep: last`"+` by a message for each. It is bounded by event time alone.`).
		Example("Webhooks", "A sender that repeats itself for an hour.", `
pipeline:
  threads: 1
  processors:
    - watermark:
        event_time: this.created_at
        delay: 1m
    - watermark_dedupe:
        key: this.event_id
        within: 1h
        position: none
`).
		Field(service.NewStringField(fieldKey).Example("this.id").
			Description("A Bloblang expression for the key. 1 and 1.0 are one key, \"1\" is another; a list or an object makes a key of several parts. Null is never a duplicate.")).
		Field(durationField(fieldWithin, "How long after its first message, in event time, a key is remembered. By default as long as the `delay` of the watermark, the largest one of its sources.").Optional().Example("10m")).
		Field(service.NewBoolField(fieldWithEventTime).Default(false).
			Description("Whether the event time is a part of the key. There is no `within` then.")).
		Field(optionField(fieldKeep, "first", "last").Default("first").
			Description("Which message of a key comes out: the first one, on arrival, or the one with the largest event time, when the key is forgotten. An operator on its own needs `within` for the latter.")).
		Field(optionField(fieldDuplicates, "drop", "pass").Default("drop").
			Description("What becomes of duplicates: they are counted in `windowed_duplicate_rows`, and with `pass` go on with the operator's name as the metadata `windowed_duplicate`, past all later operators.")).
		Field(lateField()).
		Fields(commonFields()...)
}

// likelyDelay is that of a watermark which an operator on its own does not know when
// it starts.
const likelyDelay = 10 * time.Second

// Mistakes of a deduplication.
var (
	errWithinTime = errors.New("within: with_event_time forgets a key when the watermark has passed its time: remove one of the two")
	errWithinLast = errors.New("within: missing: on its own the operator does not know the delay of the watermark when it starts, and with keep: last it has to: set within, or put the operators into a windowed input or processor")
)

// parseDedupe reads the configuration of a deduplication.
func parseDedupe(conf *service.ParsedConfig) (*operator, error) {
	op, err := parseCommon(conf, kindDedupe)
	if err != nil {
		return nil, err
	}
	cfg, err := parseDedupeConfig(conf, op.name)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", op.kind, op.name, err)
	}
	cfg.Codec, cfg.Delay = messageCodec{}, likelyDelay
	byDelay := cfg.DefaultWithin && !cfg.WithEventTime
	fit := func(within time.Duration) {
		cfg.Within = within
		d := windowing.NewDedupe(cfg)
		op.stage.Operator, op.stage.Hold, op.stage.Definition = d, cfg.Hold(), d.Definition()
	}
	reader := &dedupeReader{}
	switch {
	case !byDelay:
		fit(cfg.Within)
	case cfg.KeepLast:
		op.alone = errWithinLast
		fit(0) // until a host tells
	default:
		reader.within = true
		fit(-1)
	}
	op.behind = func(w *operator) error {
		cfg.Delay = w.delay
		if byDelay {
			reader.within = false
			cfg.Within = w.delay
			if w.delay == 0 {
				op.doubt = "within is missing, and the delay of the watermark, which stands for it, is 0s: hardly any duplicate is found. Set within to how far apart duplicates may come"
			}
		}
		fit(cfg.Within)
		return nil
	}
	op.compile = reader.compile(cfg.Key)
	op.bind = func(p *program) windowing.Binding { return &dedupeBinding{program: p} }
	return op, nil
}

func parseDedupeConfig(conf *service.ParsedConfig, name string) (cfg windowing.DedupeConfig, err error) {
	cfg.Name = name
	if cfg.Key, err = conf.FieldString(fieldKey); err != nil {
		return cfg, err
	}
	if strings.TrimSpace(cfg.Key) == "" {
		return cfg, fmt.Errorf("%s: must not be empty: give a Bloblang expression, such as this.id", fieldKey)
	}
	if cfg.Within, err = parseDuration(conf, 0, fieldWithin); err != nil {
		return cfg, err
	}
	cfg.DefaultWithin = !conf.Contains(fieldWithin)
	if cfg.WithEventTime, err = conf.FieldBool(fieldWithEventTime); err != nil {
		return cfg, err
	}
	if cfg.WithEventTime && !cfg.DefaultWithin {
		return cfg, errWithinTime
	}
	for _, o := range []struct {
		field, first, second string
		to                   *bool
	}{{fieldKeep, "first", "last", &cfg.KeepLast}, {fieldDuplicates, "drop", "pass", &cfg.PassDuplicates}, {fieldLate, "drop", "pass", &cfg.PassLate}} {
		word, err := parseOption(conf, o.field, o.first, o.second)
		if err != nil {
			return cfg, err
		}
		*o.to = word == o.second
	}
	return cfg, nil
}

// dedupeReader fills Key, and Args with the delay of the watermark where a key is
// remembered as long as that.
type dedupeReader struct {
	key    expr.Slot
	within bool
}

func (r *dedupeReader) compile(key string) compiler {
	return func(set *expr.Set) (reader, error) {
		slot, err := set.Key(fieldKey, key)
		return &dedupeReader{key: slot, within: r.within}, err
	}
}

func (r *dedupeReader) read(s *scratch, i int, row *windowing.Row) error {
	key, err := s.Get(i, r.key)
	if err != nil {
		return err
	}
	from := len(s.keys)
	s.keys = key.AppendKey(s.keys)
	row.Key = s.keys[from:len(s.keys):len(s.keys)]
	if r.within {
		row.Args = s.room(1)
		row.Args[0] = agg.Int(int64(carriedBy(s.batch[i]).pair.of.delay))
	}
	return nil
}

// messageCodec keeps a whole message.
type messageCodec struct{}

// Encode implements windowing.Codec.
func (messageCodec) Encode(b []byte, m windowing.Message) []byte { return edge{}.Append(b, m) }

// Decode implements windowing.Codec.
func (messageCodec) Decode(data []byte) (windowing.Message, error) { return edge{}.Decode(data) }

// dedupeBinding is the binding of a deduplication.
type dedupeBinding struct {
	*program
	failing
}

// Extract implements windowing.Binding.
func (b *dedupeBinding) Extract(rows []windowing.Row) { b.extract(rows) }

// Render implements windowing.Binding.
func (b *dedupeBinding) Render(res *windowing.Result) windowing.Message { return res.Message }

func init() { register(kindDedupe, dedupeSpec(), parseDedupe) }
