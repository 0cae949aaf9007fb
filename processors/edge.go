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
	texts *markTexts // nil: metadata is written anew for each row
}

// markTexts are metadata values of the row before: neighbours share most of them.
// It belongs to one owner.
type markTexts struct {
	operator any
	times    [4]struct {
		at   watermark.Time
		text any
	}
}

// The times of a row.
const (
	eventTimeText = iota
	watermarkText
	startText
	endText
)

// time gives the text of a time.
func (c *markTexts) time(which int, t watermark.Time) any {
	if c == nil {
		return timeText(which, t)
	}
	s := &c.times[which]
	if s.text == nil || s.at != t {
		s.at, s.text = t, timeText(which, t)
	}
	return s.text
}

func timeText(which int, t watermark.Time) string {
	if which == startText || which == endText {
		return string(windowing.AppendBound(nil, t))
	}
	return t.String()
}

// name gives the name of an operator.
func (c *markTexts) name(operator string) any {
	if c == nil {
		return operator
	}
	if c.operator != any(operator) {
		c.operator = operator
	}
	return c.operator
}

// Exit implements host.Edge.
func (e edge) Exit(row *windowing.Row) windowing.Message {
	if r, ok := row.Message.(*rendered); ok {
		if row.Err == nil {
			r.mark = row.Mark
			return r
		}
		row.Message = service.NewMessage(r.payload)
	}
	m := described(row.Entry, row.Message.(*service.Message))
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
		markMessage(m, row.Mark, e.texts)
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
func markMessage(m *service.Message, mark *windowing.Mark, texts *markTexts) {
	m.MetaSetMut(metaOperator, texts.name(mark.Operator))
	if mark.RowKey != "" {
		m.MetaSetMut(metaRowKey, mark.RowKey)
		m.MetaSetMut(metaRowID, windowing.RowID(mark.RowKey, mark.Revision))
		m.MetaSetMut(metaRevision, mark.Revision)
	}
	if mark.Timing != windowing.NoTiming {
		m.MetaSetMut(metaTiming, mark.Timing.String())
	}
	m.MetaSetMut(metaEventTime, texts.time(eventTimeText, mark.EventTime))
	if mark.Watermark != watermark.Unset {
		m.MetaSetMut(metaWatermark, texts.time(watermarkText, mark.Watermark))
	}
	if mark.Spanned {
		m.MetaSetMut(metaStart, texts.time(startText, mark.Start))
		m.MetaSetMut(metaEnd, texts.time(endText, mark.End))
	}
}

// Body implements host.Edge.
func (edge) Body(m windowing.Message) []byte {
	if r, ok := m.(*rendered); ok {
		return r.payload
	}
	return payload(m.(*service.Message))
}

// payload is the bytes of a message, of its JSON text where it has no bytes.
func payload(m *service.Message) []byte {
	b, err := m.AsBytes()
	if err != nil { // a structured value that is no JSON, such as a NaN
		return []byte(err.Error())
	}
	return b
}
