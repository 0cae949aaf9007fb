// Package random makes event streams from a seed, together with what the oracle
// needs to know of every row. The same seed gives the same stream for ever.
package random

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/connect-windowed/connect-windowed/tests/oracle"
)

// Shape is what a stream looks like.
type Shape struct {
	Seed       uint64
	Rows       int // over all partitions
	Partitions int
	Groups     int           // at most len(keys)
	Delay      time.Duration // of the watermark: no ordinary row is further behind its partition's newest
	Window     time.Duration // rows like to fall on multiples of it
	Origin     int64         // the first event time, ns
	Step       time.Duration // how far event time moves from row to row at most
	Late       float64       // share of rows that are further behind than Delay
	Invalid    float64       // share of rows that are no data
	Floats     bool          // values are floats too
	Holes      bool          // offsets skip numbers, and some hold two rows
	Payload    uint64        // another number: the same positions with other payloads
}

// Event is one message.
type Event struct {
	Partition int
	Offset    int64
	Payload   json.RawMessage // {"_raw": text} for a payload that is no JSON
	Row       oracle.Row
}

// keys are the values of the field k as they stand in a payload, with the text
// under which they are one group. "" leaves the field out.
var keys = []struct{ field, group string }{
	{`"a"`, `"a"`}, {`"b"`, `"b"`}, {`1`, `1`}, {`1.0`, `1`}, {`"1"`, `"1"`}, {`null`, `null`}, {``, `null`}, {`""`, `""`},
	{`true`, `true`}, {`"null"`, `"null"`}, {`"ü€😀"`, `"ü€😀"`}, {`-7`, `-7`}, {`2.5`, `2.5`}, {`"\u0000"`, `"\u0000"`},
}

// malformed are the fields of rows without a usable event time.
var malformed = []string{`"ts":null`, `"x":1`, `"ts":""`, `"ts":"yesterday"`, `"ts":true`, `"ts":{}`, `"ts":"2016-12-31T23:59:60Z"`, `"ts":1e300`}

type maker struct {
	Shape
	rnd    *rand.Rand
	newest []int64
	spoken []*int64 // event time of the last row with one
	offset []int64
	id     int
}

// Events gives the stream of each partition in its order.
func (s Shape) Events() [][]Event {
	m := &maker{Shape: s, rnd: rand.New(rand.NewPCG(s.Seed, s.Payload)), newest: make([]int64, s.Partitions),
		spoken: make([]*int64, s.Partitions), offset: make([]int64, s.Partitions)}
	for p := range m.newest {
		m.newest[p] = s.Origin + m.rnd.Int64N(int64(s.Step)+1)
	}
	out := make([][]Event, s.Partitions)
	place := rand.New(rand.NewPCG(s.Seed, 1)) // positions do not depend on Payload
	for range s.Rows {
		p := place.IntN(s.Partitions)
		out[p] = append(out[p], m.event(p, m.next(p, place)))
	}
	for p := range out { // a last row closes everything before it
		m.newest[p] += int64(100*s.Delay + 100*s.Window)
		out[p] = append(out[p], m.at(p, m.next(p, place), m.newest[p]))
	}
	return out
}

// next is the offset of the next row of a partition.
func (m *maker) next(p int, place *rand.Rand) int64 {
	step := int64(1)
	if m.Holes {
		switch n := place.IntN(10); {
		case n < 1:
			step = 2 + place.Int64N(40)
		case n < 2 && m.offset[p] > 0:
			step = 0
		}
	}
	m.offset[p] += step
	return m.offset[p]
}

func (m *maker) event(p int, offset int64) Event {
	if m.rnd.Float64() < m.Invalid {
		return m.invalid(p, offset)
	}
	m.newest[p] += m.rnd.Int64N(int64(m.Step) + 1)
	if m.rnd.IntN(8) == 0 { // exactly on an edge, or just before it
		m.newest[p] += int64(m.Window) - mod(m.newest[p], int64(m.Window)) - int64(m.rnd.IntN(2))
	}
	behind := int64(0)
	switch n := m.rnd.Float64(); {
	case n < m.Late:
		behind = int64(m.Delay) + 1 + m.rnd.Int64N(int64(3*m.Window+m.Delay))
	case n < m.Late+0.5:
		behind = m.rnd.Int64N(int64(m.Delay) + 1)
	case n < m.Late+0.55:
		behind = int64(m.Delay)
	}
	return m.at(p, offset, m.newest[p]-behind)
}

func mod(a, b int64) int64 { return ((a % b) + b) % b }

// at makes a row with a given event time, as a number of milliseconds, where it is
// one, or as a text.
func (m *maker) at(p int, offset, t int64) Event {
	m.id++
	m.spoken[p] = &t
	text := strconv.Quote(time.Unix(0, t).UTC().Format(time.RFC3339Nano))
	switch zone := time.FixedZone("", 3600*(m.rnd.IntN(25)-12)+1800); m.rnd.IntN(3) {
	case 0:
		text = strconv.Quote(time.Unix(0, t).In(zone).Format(time.RFC3339Nano))
	case 1:
		if t%1e6 == 0 {
			text = strconv.FormatInt(t/1e6, 10)
		}
	}
	key := keys[m.rnd.IntN(min(max(m.Groups, 1), len(keys)))]
	value, number, float := m.value()
	fields := fmt.Sprintf(`"id":%d,"p":"p%d","ts":%s`, m.id, p, text)
	if key.field != "" {
		fields += `,"k":` + key.field
	}
	if value != "" {
		fields += `,"v":` + value
	}
	return Event{Partition: p, Offset: offset, Payload: json.RawMessage("{" + fields + "}"),
		Row: oracle.Row{ID: m.id, Partition: fmt.Sprintf("p%d", p), Time: t, Group: key.group, Value: number, Float: float}}
}

// value gives the text of the field v and the number that it is.
func (m *maker) value() (text string, number *big.Rat, float bool) {
	switch n := m.rnd.IntN(20); {
	case n == 0:
		return "", nil, false
	case n == 1:
		return "null", nil, false
	case n == 2:
		v := m.rnd.Int64N(1 << 58)
		return strconv.FormatInt(v, 10), new(big.Rat).SetInt64(v), false
	case n < 10 && m.Floats:
		f := (m.rnd.Float64() - 0.5) * math.Pow(10, float64(m.rnd.IntN(30)-10))
		return strconv.FormatFloat(f, 'g', -1, 64), new(big.Rat).SetFloat64(f), true
	}
	v := m.rnd.Int64N(2001) - 1000
	return strconv.FormatInt(v, 10), new(big.Rat).SetInt64(v), false
}

// invalid makes a message that takes part in nothing. One kind has an event time
// and a value that no sum takes; the time is that of the row before it, so that
// nothing depends on whether it moves the watermark.
func (m *maker) invalid(p int, offset int64) Event {
	m.id++
	e := Event{Partition: p, Offset: offset, Row: oracle.Row{ID: m.id, Partition: fmt.Sprintf("p%d", p), Invalid: true}}
	head := fmt.Sprintf(`{"id":%d,"p":"p%d",`, m.id, p)
	switch n := m.rnd.IntN(len(malformed) + 3); {
	case n < len(malformed), m.spoken[p] == nil:
		n %= len(malformed)
		e.Payload = json.RawMessage(head + malformed[n] + `}`)
	case n == len(malformed):
		e.Payload = json.RawMessage(fmt.Sprintf(`{"_raw":"not json %d"}`, m.id))
	case n == len(malformed)+1:
		e.Payload = json.RawMessage(fmt.Sprintf(`{"_raw":"{\"id\":%d"}`, m.id))
	default:
		e.Payload = json.RawMessage(head + `"ts":"` + time.Unix(0, *m.spoken[p]).UTC().Format(time.RFC3339Nano) + `","k":"a","v":"text"}`)
	}
	return e
}

// Cut interleaves the partitions at random, each in its order, into batches of at
// most limit messages. Rows that share an offset stay in one batch.
func Cut(seed uint64, parts [][]Event, limit int) [][]Event {
	rnd := rand.New(rand.NewPCG(seed, 2))
	rest := make([][]Event, len(parts))
	left := 0
	for p := range parts {
		rest[p] = parts[p]
		left += len(parts[p])
	}
	var batches [][]Event
	for left > 0 {
		var batch []Event
		for size := 1 + rnd.IntN(limit); len(batch) < size && left > 0; {
			p := rnd.IntN(len(rest))
			for n := 1 + rnd.IntN(4); n > 0 && len(rest[p]) > 0; n-- {
				batch, rest[p] = append(batch, rest[p][0]), rest[p][1:]
				left--
				if len(rest[p]) > 0 && rest[p][0].Offset == batch[len(batch)-1].Offset {
					n++
				}
			}
		}
		batches = append(batches, batch)
	}
	return batches
}

// Rows gives what the oracle is asked about.
func Rows(batches [][]Event) [][]oracle.Row {
	out := make([][]oracle.Row, len(batches))
	for i, batch := range batches {
		for _, e := range batch {
			out[i] = append(out[i], e.Row)
		}
	}
	return out
}
