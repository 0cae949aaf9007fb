package processors

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// Metadata of rows that leave.
const (
	metaRowKey       = "windowed_row_key"
	metaRowID        = "windowed_row_id"
	metaRevision     = "windowed_revision"
	metaTiming       = "windowed_timing"
	metaOperator     = "windowed_operator"
	metaEventTime    = "windowed_event_time"
	metaWatermark    = "windowed_watermark"
	metaStart        = "windowed_start"
	metaEnd          = "windowed_end"
	metaLateOperator = "windowed_late_operator"
	metaLateBy       = "windowed_late_by"
	metaDuplicate    = "windowed_duplicate"
)

// edge implements host.Edge over Benthos messages.
type edge struct {
	// pairs says that what messages carry leaves with them, for the next operator
	// that stands on its own.
	pairs bool
}

// Exit implements host.Edge.
func (e edge) Exit(row *windowing.Row) windowing.Message {
	m := row.Message.(*service.Message)
	if !e.pairs {
		m = unload(m)
	}
	if row.Err != nil {
		m.SetError(row.Err)
	}
	switch {
	case row.Mark == nil:
	case row.Flag == windowing.Late:
		strip(m)
		m.MetaSetMut(metaLateOperator, row.Mark.Operator)
		m.MetaSetMut(metaLateBy, row.Mark.LateBy.String())
	case row.Flag == windowing.Duplicate:
		strip(m)
		m.MetaSetMut(metaDuplicate, row.Mark.Operator)
	default:
		strip(m)
		markMessage(m, row.Mark)
	}
	return m
}

// owned are the keys that only the exit of a chain writes.
var owned = map[string]bool{metaRowKey: true, metaRowID: true, metaRevision: true, metaTiming: true,
	metaOperator: true, metaEventTime: true, metaWatermark: true, metaStart: true, metaEnd: true,
	metaLateOperator: true, metaLateBy: true, metaDuplicate: true}

// strip removes what another pipeline, or a processor on the way, has written
// under keys that say what a row is.
func strip(m *service.Message) {
	var forged []string
	_ = m.MetaWalkMut(func(key string, _ any) error {
		if owned[key] {
			forged = append(forged, key)
		}
		return nil
	})
	for _, key := range forged {
		m.MetaDelete(key)
	}
}

// markMessage writes the metadata of an emitted row.
func markMessage(m *service.Message, mark *windowing.Mark) {
	m.MetaSetMut(metaOperator, mark.Operator)
	if mark.RowKey != "" {
		m.MetaSetMut(metaRowKey, mark.RowKey)
		m.MetaSetMut(metaRowID, windowing.RowID(mark.RowKey, mark.Revision))
		m.MetaSetMut(metaRevision, mark.Revision)
	}
	if mark.Timing != windowing.NoTiming {
		m.MetaSetMut(metaTiming, mark.Timing.String())
	}
	m.MetaSetMut(metaEventTime, mark.EventTime.String())
	if mark.Watermark != watermark.Unset {
		m.MetaSetMut(metaWatermark, mark.Watermark.String())
	}
	if mark.Spanned {
		m.MetaSetMut(metaStart, string(windowing.AppendBound(nil, mark.Start)))
		m.MetaSetMut(metaEnd, string(windowing.AppendBound(nil, mark.End)))
	}
}

// Body implements host.Edge.
func (edge) Body(m windowing.Message) []byte { return payload(m.(*service.Message)) }

// payload is the bytes of a message, of its JSON text where it has no bytes.
func payload(m *service.Message) []byte {
	b, err := m.AsBytes()
	if err != nil { // a structured value that is no JSON, such as a NaN
		return []byte(err.Error())
	}
	return b
}
