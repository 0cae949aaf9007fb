package processors

import (
	"errors"
	"fmt"
	"strings"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// errSource says that a row belongs to no source or to several.
var errSource = errors.New("a row belongs to exactly one source")

// sourceConfig is one source as the user wrote it.
type sourceConfig struct {
	name      string
	when      string // "" for the one source without a name
	eventTime string // "": the time that the row carries
	unit      watermark.Unit
	partition string // "": by topic and partition of Kafka where a message has them; "none": one for all
}

// watermarkReader fills Time, Source and Partition.
type watermarkReader struct {
	sources []sourceSlots
	topic   expr.Slot // kafka_topic and kafka_partition
	number  expr.Slot
	names   string
}

type sourceSlots struct {
	config          sourceConfig
	when, at, split expr.Slot
}

const noPartition = "none"

// The metadata that Kafka inputs set.
const (
	kafkaTopic     = "kafka_topic"
	kafkaPartition = "kafka_partition"
)

// compileWatermark makes the compiler of a watermark stage.
func compileWatermark(sources []sourceConfig) compiler {
	return func(set *expr.Set) (reader, error) {
		r := &watermarkReader{}
		var err error
		if r.topic, err = set.Value("partition", "@"+kafkaTopic); err == nil {
			r.number, err = set.Value("partition", "@"+kafkaPartition)
		}
		if err != nil {
			return nil, err
		}
		return r.add(set, sources)
	}
}

// add adds the expressions of sources.
func (r *watermarkReader) add(set *expr.Set, sources []sourceConfig) (reader, error) {
	var names []string
	for _, c := range sources {
		slots, err := compileSource(set, c)
		if err != nil {
			return nil, err
		}
		names = append(names, c.name)
		r.sources = append(r.sources, slots)
	}
	r.names = strings.Join(names, ", ")
	return r, nil
}

func compileSource(set *expr.Set, c sourceConfig) (s sourceSlots, err error) {
	s.config = c
	field := func(name string) string {
		if c.name == "" {
			return name
		}
		return "sources." + c.name + "." + name
	}
	if c.when != "" {
		if s.when, err = set.Bool(field("when"), c.when); err != nil {
			return s, err
		}
	}
	if c.eventTime != "" {
		if s.at, err = set.Time(field("event_time"), c.eventTime, c.unit); err != nil {
			return s, err
		}
	}
	if c.partition != "" && c.partition != noPartition {
		s.split, err = set.Text(field("partition"), c.partition)
	}
	return s, err
}

func (r *watermarkReader) read(s *scratch, i int, row *windowing.Row) error {
	index, err := r.source(s, i)
	if err != nil {
		return err
	}
	src := &r.sources[index]
	row.Source = int32(index)
	if src.config.eventTime != "" {
		at, err := s.Get(i, src.at)
		if err != nil {
			return err
		}
		row.Time = watermark.Time(at.AsInt())
	} else if row.Time == watermark.Unset {
		return fmt.Errorf("event_time: the message carries no event time of a watermark upstream: set event_time")
	}
	switch src.config.partition {
	case noPartition:
		row.Partition = ""
	case "":
		row.Partition = r.kafka(s, i)
	default:
		partition, err := s.Get(i, src.split)
		if err != nil {
			return err
		}
		row.Partition = partition.AsString()
	}
	return nil
}

// source gives the index of the one source that the row belongs to.
func (r *watermarkReader) source(s *scratch, i int) (int, error) {
	if len(r.sources) == 1 && r.sources[0].config.when == "" {
		return 0, nil
	}
	found := -1
	for j := range r.sources {
		src := &r.sources[j]
		if err := s.Err(i, src.when); err != nil {
			return 0, err
		}
		if !s.Bool(i, src.when) {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("sources: the row belongs to %s and to %s: %w; make their `when` exclude each other", r.sources[found].config.name, src.config.name, errSource)
		}
		found = j
	}
	if found < 0 {
		return 0, fmt.Errorf("sources: the row belongs to none of %s: %w; mend a `when`, or filter such rows out before the watermark", r.names, errSource)
	}
	return found, nil
}

// kafka gives the partition of a message by its Kafka metadata, "" without.
func (r *watermarkReader) kafka(s *scratch, i int) string {
	m := s.batch[i]
	if h := bareOf(m); h != nil {
		return h.Partition
	}
	topic, ok := m.MetaGetMut(kafkaTopic)
	if !ok {
		return ""
	}
	partition, _ := m.MetaGetMut(kafkaPartition)
	if name, ok := s.names.plain(topic, partition); ok {
		return name
	}
	text, number := s.Value(i, r.topic), s.Value(i, r.number)
	if text.IsNull() || number.IsNull() {
		return ""
	}
	return s.names.of(text, number)
}
