package processors

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// Kinds of metadata values in the outbox. Numbers are part of the format.
const (
	kindNull   = 0
	kindString = 1
	kindBytes  = 2
	kindBool   = 3
	kindInt    = 4
	kindFloat  = 5
	kindTime   = 6
	kindJSON   = 7
	kindUint   = 8
	kindGoInt  = 9 // an int, as Kafka inputs set partition and offset
)

// Append implements host.Edge: payload, error text, metadata, and what the
// message carries where it goes on to another operator.
func (e edge) Append(b []byte, msg windowing.Message) []byte {
	m := msg.(*service.Message)
	b = kv.AppendBlob(b, payload(m))
	err := m.GetError()
	b = kv.AppendBool(b, err != nil)
	if err != nil {
		b = kv.AppendBlob(b, err.Error())
	}
	count := 0
	_ = m.MetaWalkMut(func(string, any) error { count++; return nil })
	b = kv.AppendUvarint(b, uint64(count))
	_ = m.MetaWalkMut(func(key string, value any) error {
		b = appendMeta(kv.AppendBlob(b, key), value)
		return nil
	})
	return e.appendCarried(b, m)
}

// appendCarried encodes the pair and the time of a message between operators.
func (e edge) appendCarried(b []byte, m *service.Message) []byte {
	c := carriedBy(m)
	has := e.pairs && c != nil && c.pair != nil
	b = kv.AppendBool(b, has)
	if !has {
		return b
	}
	for _, t := range []watermark.Time{c.row.Time, c.pair.late, c.pair.close, c.pair.now} {
		b = kv.AppendVarint(b, int64(t))
	}
	b = kv.AppendVarint(b, int64(c.row.Source))
	b = kv.AppendVarint(b, int64(c.row.Flag))
	b = kv.AppendBool(b, c.at.Known)
	b = kv.AppendVarint(kv.AppendBlob(b, c.at.Partition), c.at.Offset)
	b = kv.AppendBlob(b, c.pair.revised)
	b = kv.AppendUvarint(b, uint64(len(c.pair.sources)))
	for _, name := range c.pair.sources {
		b = kv.AppendBlob(b, name)
	}
	return b
}

// appendMeta encodes one metadata value with its type.
func appendMeta(b []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(b, kindNull)
	case string:
		return kv.AppendBlob(append(b, kindString), v)
	case []byte:
		return kv.AppendBlob(append(b, kindBytes), v)
	case bool:
		return kv.AppendBool(append(b, kindBool), v)
	case int:
		return kv.AppendVarint(append(b, kindGoInt), int64(v))
	case int32:
		return kv.AppendVarint(append(b, kindInt), int64(v))
	case int64:
		return kv.AppendVarint(append(b, kindInt), v)
	case uint64:
		return kv.AppendUvarint(append(b, kindUint), v)
	case float32:
		return kv.AppendUint64(append(b, kindFloat), math.Float64bits(float64(v)))
	case float64:
		return kv.AppendUint64(append(b, kindFloat), math.Float64bits(v))
	case time.Time:
		return kv.AppendBlob(append(b, kindTime), v.Format(time.RFC3339Nano))
	}
	text, err := json.Marshal(value)
	if err != nil {
		return kv.AppendBlob(append(b, kindString), fmt.Sprint(value))
	}
	return kv.AppendBlob(append(b, kindJSON), text)
}

// Decode implements host.Edge.
func (e edge) Decode(data []byte) (windowing.Message, error) {
	d := kv.NewDecoder(data)
	m := service.NewMessage(d.Bytes())
	if d.Bool() {
		m.SetError(errors.New(d.String()))
	}
	for n := d.Count(2); n > 0 && d.Err() == nil; n-- {
		key := d.String()
		value, err := readMeta(d)
		if err != nil {
			return nil, fmt.Errorf("metadata %q: %w", key, err)
		}
		m.MetaSetMut(key, value)
	}
	if d.Bool() {
		m = carry(m, readCarried(d))
	}
	return m, d.Done()
}

func readCarried(d *kv.Decoder) *carried {
	c := &carried{pair: &pair{}}
	c.row.Time = watermark.Time(d.Varint())
	c.pair.late, c.pair.close, c.pair.now = watermark.Time(d.Varint()), watermark.Time(d.Varint()), watermark.Time(d.Varint())
	c.row.Source = int32(d.Varint())
	c.row.Flag = windowing.Flag(d.Varint())
	c.at = host.Position{Known: d.Bool(), Partition: d.String(), Offset: d.Varint()}
	c.pair.revised = d.String()
	for n := d.Count(1); n > 0 && d.Err() == nil; n-- {
		c.pair.sources = append(c.pair.sources, d.String())
	}
	return c
}

func readMeta(d *kv.Decoder) (any, error) {
	switch kind := d.Byte(); kind {
	case kindNull:
		return nil, d.Err()
	case kindString:
		return d.String(), d.Err()
	case kindBytes:
		return append([]byte{}, d.Bytes()...), d.Err()
	case kindBool:
		return d.Bool(), d.Err()
	case kindInt:
		return d.Varint(), d.Err()
	case kindGoInt:
		return int(d.Varint()), d.Err()
	case kindUint:
		return d.Uvarint(), d.Err()
	case kindFloat:
		return math.Float64frombits(d.Fixed64()), d.Err()
	case kindTime:
		text := d.String()
		if d.Err() != nil {
			return nil, d.Err()
		}
		return time.Parse(time.RFC3339Nano, text)
	case kindJSON:
		data := d.Bytes()
		if d.Err() != nil {
			return nil, d.Err()
		}
		var v any
		err := json.Unmarshal(data, &v)
		return v, err
	default:
		return nil, fmt.Errorf("unknown kind of value %d", kind)
	}
}
