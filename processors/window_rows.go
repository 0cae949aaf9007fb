package processors

import (
	"fmt"
	"slices"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

// rowWriter writes the results of an aggregating stage as JSON objects of the
// bounds, the groups and the aggregates. It belongs to one goroutine.
type rowWriter struct {
	zone   *time.Location // of the bounds, nil: UTC
	groups [][]byte       // `,"name":`
	fields [][]byte
	bounds []byte         // the beginning of the last row
	span   windowing.Span // what bounds was written for
	doc    []byte         // the last row
	room   renderedRoom
}

func newRowWriter(groups []windowing.GroupField, aggregates []windowing.Aggregate) *rowWriter {
	w := &rowWriter{}
	for _, g := range groups {
		w.groups = append(w.groups, jsonField(g.Name))
	}
	for _, a := range aggregates {
		w.fields = append(w.fields, jsonField(a.Name))
	}
	return w
}

// jsonField is a name as it stands in the middle of a JSON object.
func jsonField(name string) []byte {
	return append(agg.String(name).AppendJSON([]byte{','}), ':')
}

// message makes a message of a result.
func (w *rowWriter) message(res *windowing.Result) *service.Message {
	return service.NewMessage(slices.Clone(w.write(res)))
}

// write writes a result. The text is there until the next one.
func (w *rowWriter) write(res *windowing.Result) []byte {
	if span := (windowing.Span{Start: res.Start, End: res.End}); w.bounds == nil || span != w.span {
		w.span = span
		w.bounds = w.appendBound(append(w.bounds[:0], `{"window_start":"`...), span.Start)
		w.bounds = append(w.appendBound(append(w.bounds, `","window_end":"`...), span.End), '"')
	}
	doc := append(w.doc[:0], w.bounds...)
	rest := res.Key
	for _, name := range w.groups {
		v, tail, err := agg.DecodeKey(rest)
		if err != nil { // the operator made the key from values: it cannot be damaged
			panic(fmt.Sprintf("processors: group key %x: %v", res.Key, err))
		}
		doc, rest = v.AppendJSON(append(doc, name...)), tail
	}
	for i := range res.Values {
		doc = res.Values[i].AppendJSON(append(doc, w.fields[i]...))
	}
	w.doc = append(doc, '}')
	return w.doc
}

// appendBound writes a bound in the zone. RFC 3339 has no seconds of an offset,
// which local times before the days of railways have: those are written in UTC.
func (w *rowWriter) appendBound(b []byte, t watermark.Time) []byte {
	if w.zone == nil {
		return windowing.AppendBound(b, t)
	}
	local := t.Std().In(w.zone)
	if _, offset := local.Zone(); offset%60 != 0 {
		return windowing.AppendBound(b, t)
	}
	return local.AppendFormat(b, time.RFC3339Nano)
}
