package processors

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// Fields of watermark.
const (
	kindWatermark     = "watermark"
	fieldEventTime    = "event_time"
	fieldUnit         = "unit"
	fieldDelay        = "delay"
	fieldPartition    = "partition"
	fieldPartitions   = "partitions"
	fieldPolicy       = "policy"
	fieldIdleTimeout  = "idle_timeout"
	fieldIdleAdvance  = "idle_advance"
	fieldMaxAhead     = "max_ahead"
	fieldStartupGrace = "startup_grace"
	fieldSources      = "sources"
	fieldWhen         = "when"
)

func watermarkSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Windowing").
		Summary("Gives every message its event time and says how far event time has come.").
		Description(`The watermark W is the largest event time seen, less ` + "`delay`" + `: the point up to which rows are expected to be complete. Operators behind it in the list judge lateness and close windows by it. It is kept for each partition and, with ` + "`sources`" + `, for each source; the smallest one that is not idle counts. It is unset at first, never goes back and survives restarts.

A batch is judged with W as it was before the batch and closes windows with W as it is after it, so that the order of rows inside a batch does not matter.

A message whose event time is null, missing or malformed goes on with an error, moves nothing and enters no state.`).
		Fields(sourceFields(false)...).
		Field(service.NewObjectMapField(fieldSources, sourceFields(true)...).Optional().
			Description("Several streams in one input, each with its own delay: a row belongs to the one whose `when` holds. What stands at the top is the default of all. W is the smallest over the sources that have an active partition.")).
		Field(optionField(fieldPolicy, "min", "max").Default("min").Advanced().
			Description("Whether the smallest or the largest partition of a source counts.")).
		Field(durationField(fieldMaxAhead, "A row further than this beyond the wall clock is invalid and moves nothing: one bad clock must not make everything else late. Off by default.").Optional()).
		Field(durationField(fieldStartupGrace, "How long W stays unset after the first row, so that partitions that were not declared can speak. `5s` by default where messages carry a partition, else `0s`.").Optional().Advanced()).
		Field(service.NewBoolField(fieldIdleAdvance).Default(false).Advanced().
			Description("Whether W moves with the wall clock while no row arrives at all, which closes the last windows. It suspends the promise that rows at most `delay` behind are kept. In the `windowed` input only.")).
		Fields(commonFields()...)
}

func durationField(name, description string) *service.ConfigField {
	return service.NewStringField(name).Description(description).LintRule(durationLint(name, false))
}

// sourceFields are the fields that stand at the top or in a source.
func sourceFields(inSource bool) []*service.ConfigField {
	fields := []*service.ConfigField{
		service.NewStringField(fieldEventTime).Optional().Example("this.ts").
			Description("A Bloblang expression for the event time: an RFC 3339 text, a timestamp, or a number in `unit`. Without it a second watermark in a chain takes the time that the row carries."),
		optionField(fieldUnit, "s", "ms", "us", "ns").Optional().
			Description("The unit of numbers, `s` by default. It is never guessed."),
		durationField(fieldDelay, "How far rows may lie behind the newest one of their partition and still be counted.").Optional().Example("3m"),
		service.NewStringField(fieldPartition).Optional().
			Description("A Bloblang expression for the partition of a row, compared as text; `none` for one partition for all. By default `kafka_topic` and `kafka_partition` where messages carry them, else one for all."),
		service.NewAnyField(fieldPartitions).Optional().Advanced().
			Description("The partitions that will speak, as a list or a count: W stays unset until each has, or until `idle_timeout` after the start."),
		durationField(fieldIdleTimeout, "A partition is left out while rows of others have kept arriving for this long since its last one. `0s`, the default, is off: a silent partition holds W back.").Optional(),
	}
	if inSource {
		fields = append(fields, service.NewStringField(fieldWhen).
			Description("A Bloblang condition: the row belongs to this source."))
	}
	return fields
}

// parseWatermark reads the configuration of a watermark.
func parseWatermark(conf *service.ParsedConfig) (*operator, error) {
	op, err := parseCommon(conf, kindWatermark)
	if err != nil {
		return nil, err
	}
	cfg := watermark.Config{StartupGrace: -1}
	sources, err := parseSources(conf, &cfg)
	if err != nil {
		return nil, fmt.Errorf("watermark %q: %w", op.name, err)
	}
	w := &windowing.Watermark{}
	if err := parseTop(conf, &cfg, w); err != nil {
		return nil, fmt.Errorf("watermark %q: %w", op.name, err)
	}
	w.Config = cfg
	for _, s := range cfg.Sources {
		op.delay = max(op.delay, s.Delay)
		op.idle = max(op.idle, s.IdleTimeout)
	}
	for _, s := range sources {
		op.sources = append(op.sources, s.name)
		op.retimed = op.retimed || s.eventTime == ""
	}
	op.stage.Watermark = w
	op.stage.Definition = watermarkDefinition(sources, cfg.Policy)
	op.compile = compileWatermark(sources)
	op.looks = func(set *expr.Set) (reader, error) { return (&watermarkReader{}).add(set, sources) }
	op.bind = func(p *program) windowing.Binding { return watermarkBinding{program: p} }
	return op, nil
}

// parseTop reads what stands at the top only.
func parseTop(conf *service.ParsedConfig, cfg *watermark.Config, w *windowing.Watermark) error {
	policy, err := parseOption(conf, fieldPolicy, "min", "max")
	if err != nil {
		return err
	}
	if policy == "max" {
		cfg.Policy = watermark.PolicyMax
	}
	if w.MaxAhead, err = parseDuration(conf, 0, fieldMaxAhead); err != nil {
		return err
	}
	if conf.Contains(fieldStartupGrace) { // negative is the default
		if cfg.StartupGrace, err = parseDuration(conf, 0, fieldStartupGrace); err != nil {
			return err
		}
	}
	cfg.IdleAdvance, err = conf.FieldBool(fieldIdleAdvance)
	return err
}

// parseSources reads the sources, or the top as the only one.
func parseSources(conf *service.ParsedConfig, cfg *watermark.Config) ([]sourceConfig, error) {
	top, topConfig, err := parseSource(conf, sourceConfig{}, watermark.SourceConfig{}, "")
	if err != nil {
		return nil, err
	}
	var named map[string]*service.ParsedConfig
	if conf.Contains(fieldSources) {
		if named, err = conf.FieldObjectMap(fieldSources); err != nil {
			return nil, err
		}
	}
	if len(named) == 0 {
		cfg.Sources = []watermark.SourceConfig{topConfig}
		return []sourceConfig{top}, nil
	}
	names := make([]string, 0, len(named))
	for name := range named {
		names = append(names, name)
	}
	slices.Sort(names)
	var sources []sourceConfig
	for _, name := range names {
		if name == "" {
			return nil, fmt.Errorf("sources: a source must have a name")
		}
		c, sc, err := parseSource(named[name], top, topConfig, name)
		if err != nil {
			return nil, fmt.Errorf("sources.%s: %w", name, err)
		}
		if c.when == "" {
			return nil, fmt.Errorf("sources.%s: when is missing: give the condition by which a row belongs to this source", name)
		}
		sources = append(sources, c)
		cfg.Sources = append(cfg.Sources, sc)
	}
	return sources, nil
}

// parseSource reads one source; c and sc hold the defaults.
func parseSource(conf *service.ParsedConfig, c sourceConfig, sc watermark.SourceConfig, name string) (sourceConfig, watermark.SourceConfig, error) {
	c.name, sc.Name = name, name
	for _, f := range []struct {
		name string
		to   *string
	}{{fieldEventTime, &c.eventTime}, {fieldPartition, &c.partition}, {fieldWhen, &c.when}} {
		if !conf.Contains(f.name) {
			continue
		}
		text, err := conf.FieldString(f.name)
		if err != nil {
			return c, sc, err
		}
		if strings.TrimSpace(text) == "" {
			return c, sc, fmt.Errorf("%s: must not be empty: give a Bloblang expression or leave the field out", f.name)
		}
		*f.to = text
	}
	var err error
	if conf.Contains(fieldUnit) {
		var unit string
		if unit, err = parseOption(conf, fieldUnit, "s", "ms", "us", "ns"); err != nil {
			return c, sc, err
		}
		if c.unit, err = watermark.ParseUnit(unit); err != nil {
			return c, sc, fmt.Errorf("%s: %w", fieldUnit, err)
		}
	}
	if sc.Delay, err = parseDuration(conf, sc.Delay, fieldDelay); err != nil {
		return c, sc, err
	}
	if sc.IdleTimeout, err = parseDuration(conf, sc.IdleTimeout, fieldIdleTimeout); err != nil {
		return c, sc, err
	}
	if err = parsePartitions(conf, &sc); err == nil && c.partition == noPartition && len(sc.Partitions)+sc.PartitionCount > 0 {
		err = fmt.Errorf("%s: with partition: none there is only one: remove one of the two", fieldPartitions)
	}
	return c, sc, err
}

// parsePartitions reads the declared partitions, a list or a count.
func parsePartitions(conf *service.ParsedConfig, sc *watermark.SourceConfig) error {
	if !conf.Contains(fieldPartitions) {
		return nil
	}
	raw, err := conf.FieldAny(fieldPartitions)
	if err != nil {
		return err
	}
	sc.Partitions, sc.PartitionCount = nil, 0
	v := plain(raw)
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		if sc.Partitions, err = partitionList(v); err != nil || len(v) > 0 {
			return err
		}
	case int:
		sc.PartitionCount = v
	case int64:
		sc.PartitionCount = int(v)
	case float64: // from a template
		if v == float64(int(v)) {
			sc.PartitionCount = int(v)
		}
	}
	if sc.PartitionCount <= 0 {
		return fmt.Errorf("%s: %v is not allowed: use a list of names or a count of 1 or more", fieldPartitions, v)
	}
	return nil
}

// partitionList gives the names, which are compared as text.
func partitionList(list []any) (names []string, err error) {
	for _, e := range list {
		switch e.(type) {
		case string, int, int64, uint64, float64, bool:
		default:
			return nil, fmt.Errorf("%s: %v is not a name: use a list of names or a count of 1 or more", fieldPartitions, e)
		}
		name := fmt.Sprint(e)
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("%s: %q is there twice: partitions are compared as text", fieldPartitions, name)
		}
		names = append(names, name)
	}
	return names, nil
}

// watermarkDefinition is what makes a stored watermark meaningful: what an event
// time and a partition are. Delays and idle settings may change freely.
func watermarkDefinition(sources []sourceConfig, policy watermark.Policy) (d []windowing.Setting) {
	for _, s := range sources {
		prefix := ""
		if s.name != "" {
			prefix = fieldSources + "." + s.name + "."
			d = append(d, windowing.Setting{Field: prefix + fieldWhen, Value: s.when})
		}
		d = append(d, windowing.Setting{Field: prefix + fieldEventTime, Value: s.eventTime},
			windowing.Setting{Field: prefix + fieldUnit, Value: fmt.Sprint(s.unit)},
			windowing.Setting{Field: prefix + fieldPartition, Value: s.partition})
	}
	return append(d, windowing.Setting{Field: fieldPolicy, Value: fmt.Sprint(policy)})
}

func init() { register(kindWatermark, watermarkSpec(), parseWatermark) }

// lagTTL is how long a reported lag counts as backlog where no idle_timeout says.
const lagTTL = 30 * time.Second
