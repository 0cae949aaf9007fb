package processors

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/processors/expr"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// fieldPosition is the field that says what a position is.
const fieldPosition = "position"

// errNoPosition goes onto messages without a position, where losing track of one
// could lose rows.
var errNoPosition = errors.New("the message has no position, so that its redelivery could not be recognised and a row whose delivery fails would be lost: set position to {partition, offset} expressions, use the windowed input, or accept the loss with `position: none`")

// errOrdinal refuses counting where it cannot be right: in front of a processor an
// input sends a refused message again within the same life, and nobody can tell it
// from a new one.
var errOrdinal = errors.New("position: ordinal counts what an input reads, which a processor does not see: use the windowed input, {partition, offset} expressions, or none")

// positionConfig is the setting as the user wrote it.
type positionConfig struct {
	mode      host.PositionMode
	partition string // expressions, "" for Kafka's metadata
	offset    string
	explicit  bool // the user set it
}

// text is the setting as part of the state's meaning.
func (c positionConfig) text() string {
	switch {
	case c.mode == host.Ordinal:
		return "ordinal"
	case c.mode == host.None:
		return "none"
	case c.offset == "":
		return "kafka metadata"
	}
	return fmt.Sprintf("{partition: %s, offset: %s}", c.partition, c.offset)
}

// kafka says that positions are Kafka's.
func (c positionConfig) kafka() bool { return c.mode == host.Offsets && c.offset == "" }

func positionField() *service.ConfigField {
	return service.NewAnyField(fieldPosition).
		Description("Where a message stands in its source, by which a redelivery is recognised: absent for the metadata `kafka_topic`, `kafka_partition` and `kafka_offset`; an object `{partition: <expression>, offset: <expression>}`; `ordinal`, in the `windowed` input only, for inputs that start at the beginning each time (messages are counted, by the metadata `path`); or `none`.").
		Optional()
}

// parsePosition reads the setting.
func parsePosition(conf *service.ParsedConfig) (c positionConfig, err error) {
	if !conf.Contains(fieldPosition) {
		return c, nil
	}
	v, err := conf.FieldAny(fieldPosition)
	if err != nil || v == nil {
		return c, err
	}
	c.explicit = true
	switch v := plain(v).(type) {
	case string:
		if mode, ok := positionWords[v]; ok {
			c.mode = mode
			return c, nil
		}
	case map[string]any:
		c.partition, _ = v["partition"].(string)
		c.offset, _ = v["offset"].(string)
		if c.partition != "" && c.offset != "" && len(v) == 2 {
			return c, nil
		}
		return c, fmt.Errorf("%s: an object takes the fields partition and offset, each a Bloblang expression, and no others", fieldPosition)
	}
	return c, fmt.Errorf("%s: %#v is not allowed: use ordinal, none, or an object of partition and offset expressions", fieldPosition, plain(v))
}

var positionWords = map[string]host.PositionMode{"ordinal": host.Ordinal, "none": host.None}

// positioner gives the positions of messages as they enter the host. It may be
// used by several goroutines; ordinal positions then follow the order of calls.
type positioner struct {
	config    positionConfig
	set       *expr.Set
	partition expr.Slot
	offset    expr.Slot

	mu     sync.Mutex        // protects what follows: a processor may be called by several threads
	counts map[string]*int64 // ordinal: messages so far, by path
	path   string            // of the message before, with its count
	count  *int64
}

func newPositioner(c positionConfig) (*positioner, error) {
	p := &positioner{config: c, counts: map[string]*int64{}}
	if c.offset == "" {
		return p, nil
	}
	p.set = expr.NewSet()
	var err error
	if p.partition, err = p.set.Text("position.partition", c.partition); err != nil {
		return nil, err
	}
	p.offset, err = p.set.Int("position.offset", c.offset)
	return p, err
}

// entries gives an entry for each message. Errors by index say why a message has
// no position although it should.
func (p *positioner) entries(batch service.MessageBatch, entries []host.Entry) (bytes int64, errs map[int]error) {
	if p.config.mode == host.Ordinal {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	var frame expr.Frame
	var kafka kafkaNames
	if p.set != nil {
		p.set.Eval(batch, &frame)
	}
	for i, m := range batch {
		pos := &entries[i].Position
		var err error
		at := emitted(m)
		switch {
		case p.config.mode == host.None:
		case at.Known && !strings.HasPrefix(at.Partition, passed):
			*pos = at
		case p.config.mode == host.Ordinal:
			path, _ := m.MetaGet(pathKey)
			p.ordinal(path, pos)
		case p.set != nil:
			err = p.evaluated(&frame, i, pos)
		default:
			kafka.position(m, pos)
		}
		if at.Known && !pos.Known && p.config.mode != host.None {
			*pos, err = at, nil
		}
		if err != nil {
			if errs == nil {
				errs = map[int]error{}
			}
			errs[i] = err
		}
		size := structuredSize
		if pos.Known || m.HasBytes() {
			body := payload(m)
			size = len(body)
			pos.Hash = host.Fingerprint(body)
		}
		bytes += int64(size)
	}
	return bytes, errs
}

// emitted gives the position of a row that an operator on its own has emitted.
func emitted(m *service.Message) host.Position {
	c := carriedBy(m)
	if c == nil || c.inner {
		return host.Position{}
	}
	return c.at
}

// pathKey is the metadata by which an input says which of its sources a message is of.
const pathKey = "path"

func (p *positioner) ordinal(path string, pos *host.Position) {
	if p.count == nil || p.path != path {
		p.path, p.count = path, p.counts[path]
		if p.count == nil {
			p.count = new(int64)
			p.counts[path] = p.count
		}
	}
	pos.Partition, pos.Offset, pos.Known = path, *p.count, true
	*p.count++
}

func (p *positioner) evaluated(frame *expr.Frame, i int, pos *host.Position) error {
	if err := frame.Err(i, p.partition); err != nil {
		return err
	}
	if err := frame.Err(i, p.offset); err != nil {
		return err
	}
	pos.Partition = frame.Text(i, p.partition)
	pos.Offset, pos.Known = frame.Int(i, p.offset)
	return nil
}

// structuredSize is what a message without bytes counts for.
const structuredSize = 512

// kafkaNames makes positions of the metadata that Kafka inputs set. It remembers
// the last partition: neighbours mostly share it.
type kafkaNames struct {
	topic, partition string
	name             string
}

func (k *kafkaNames) position(m *service.Message, pos *host.Position) {
	offset, ok := metaInt(m, "kafka_offset")
	if !ok {
		return
	}
	topic, ok1 := m.MetaGet("kafka_topic")
	partition, ok2 := m.MetaGet("kafka_partition")
	if !ok1 || !ok2 {
		return
	}
	if k.name == "" || k.topic != topic || k.partition != partition {
		k.topic, k.partition, k.name = topic, partition, topic+"/"+partition
	}
	pos.Partition, pos.Offset, pos.Known = k.name, offset, true
}

// metaInt reads an integer from metadata, a number or its text.
func metaInt(m *service.Message, key string) (int64, bool) {
	v, ok := m.MetaGetMut(key)
	if !ok {
		return 0, false
	}
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	case float64: // Bloblang's arithmetic gives those
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case json.Number: // a mapping took it from a payload
		n, err := v.Int64()
		return n, err == nil
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}
