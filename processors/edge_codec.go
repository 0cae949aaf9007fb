package processors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
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
	kindGoInt  = 9  // an int, as Kafka inputs set partition and offset
	kindNumber = 10 // a json.Number, by its text
	// Of metadata that we own:
	kindRowID   = 11 // made of row key and revision
	kindInstant = 12 // a time, as its text stands under that name
)

// Append implements host.Edge: payload, error text, metadata, and what the
// message carries where it goes on to another operator.
func (e edge) Append(b []byte, msg windowing.Message) []byte {
	if r, ok := msg.(*rendered); ok {
		return r.append(b)
	}
	m := msg.(*service.Message)
	b = kv.AppendBlob(b, payload(m))
	err := m.GetError()
	b = kv.AppendBool(b, err != nil)
	if err != nil {
		b = kv.AppendBlob(b, err.Error())
	}
	at, count := len(b), 0
	b = append(b, 0)
	_ = m.MetaWalkMut(func(key string, value any) error {
		b = e.appendMetadata(b, m, key, value)
		count++
		return nil
	})
	if b[at] = byte(count); count >= 1<<7 { // the number takes more than a byte
		b = slices.Replace(b, at, at+1, kv.AppendUvarint(nil, uint64(count))...)
	}
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
	b = kv.AppendVarint(b, int64(c.pair.of.delay))
	b = kv.AppendUvarint(b, uint64(len(c.pair.of.sources)))
	for _, name := range c.pair.of.sources {
		b = kv.AppendBlob(b, name)
	}
	return b
}

// appendMeta encodes one metadata value with its type. Narrow numbers come back
// wide, as Bloblang has them.
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
	case json.Number:
		return kv.AppendBlob(append(b, kindNumber), v.String())
	case time.Time:
		if data, err := v.MarshalBinary(); err == nil {
			return kv.AppendBlob(append(b, kindTime), data)
		}
		return kv.AppendBlob(append(b, kindString), v.String())
	}
	if b, ok := appendNumber(b, value); ok {
		return b
	}
	text, err := json.Marshal(value)
	if err != nil {
		return kv.AppendBlob(append(b, kindString), fmt.Sprint(value))
	}
	return kv.AppendBlob(append(b, kindJSON), text)
}

func appendNumber(b []byte, value any) ([]byte, bool) {
	switch v := value.(type) {
	case int:
		return kv.AppendVarint(append(b, kindGoInt), int64(v)), true
	case int32:
		return kv.AppendVarint(append(b, kindInt), int64(v)), true
	case int64:
		return kv.AppendVarint(append(b, kindInt), v), true
	case uint32:
		return kv.AppendUvarint(append(b, kindUint), uint64(v)), true
	case uint64:
		return kv.AppendUvarint(append(b, kindUint), v), true
	case float32:
		return kv.AppendUint64(append(b, kindFloat), math.Float64bits(float64(v))), true
	case float64:
		return kv.AppendUint64(append(b, kindFloat), math.Float64bits(v)), true
	}
	return b, false
}

// Decode implements host.Edge.
func (e edge) Decode(data []byte) (windowing.Message, error) {
	d := kv.NewDecoder(data)
	m := service.NewMessage(d.Bytes())
	if d.Bool() {
		m.SetError(errors.New(d.String()))
	}
	id := false
	for n := d.Count(2); n > 0 && d.Err() == nil; n-- {
		key := readName(d)
		value, err := readMeta(d, key)
		switch {
		case err != nil:
			return nil, fmt.Errorf("metadata %q: %w", key, err)
		case value == rowID{}:
			id = true
		default:
			m.MetaSetMut(key, value)
		}
	}
	if id && d.Err() == nil {
		readRowID(d, m)
	}
	if d.Bool() {
		m = carry(m, readCarried(d))
	}
	if err := d.Done(); err != nil {
		return nil, err
	}
	return m, nil
}

func readCarried(d *kv.Decoder) *carried {
	c := &carried{pair: &pair{}}
	c.row.Time = watermark.Time(d.Varint())
	c.pair.late, c.pair.close, c.pair.now = watermark.Time(d.Varint()), watermark.Time(d.Varint()), watermark.Time(d.Varint())
	source, flag := d.Varint(), d.Varint()
	if c.row.Source, c.row.Flag = int32(source), windowing.Flag(flag); int64(c.row.Source) != source || int64(c.row.Flag) != flag || c.row.Flag > windowing.Duplicate {
		d.Fail("source %d or flag %d", source, flag)
	}
	c.at = host.Position{Known: d.Bool(), Partition: d.String(), Offset: d.Varint()}
	c.pair.revised = d.String()
	c.pair.of = &origin{delay: time.Duration(d.Varint())}
	for n := d.Count(1); n > 0 && d.Err() == nil; n-- {
		c.pair.of.sources = append(c.pair.of.sources, d.String())
	}
	return c
}

// rowID stands for a row id, which is made when all metadata is there.
type rowID struct{}

func readMeta(d *kv.Decoder, key string) (any, error) {
	switch kind := d.Byte(); kind {
	case kindRowID:
		if key != metaRowID {
			d.Fail("metadata %q is no row id", key)
		}
		return rowID{}, d.Err()
	case kindInstant:
		return readInstant(d, key), d.Err()
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
	case kindNumber:
		return json.Number(d.String()), d.Err()
	case kindTime:
		data := d.Bytes()
		if d.Err() != nil {
			return nil, d.Err()
		}
		var t time.Time
		err := t.UnmarshalBinary(data)
		return t, err
	case kindJSON:
		data := d.Bytes()
		if d.Err() != nil {
			return nil, d.Err()
		}
		return readJSON(data)
	default:
		return nil, fmt.Errorf("unknown kind of value %d", kind)
	}
}

// readJSON reads one document. Numbers keep their digits, as in a payload.
func readJSON(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err = dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err = dec.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON document")
	}
	return v, nil
}
