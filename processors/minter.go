package processors

import (
	"context"
	"strconv"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/windowing"
	"github.com/connect-windowed/connect-windowed/windowing/host"
)

// mint makes the messages of a delivery, anew each time that its rows are handed
// over: what a pipeline does to them is not in those that come after a refusal.
func mint(d *host.Delivery) service.MessageBatch {
	batch := make(service.MessageBatch, len(d.Messages))
	tags := make([]tag, len(batch))
	ids := rowIDs(d.Messages)
	var pattern *service.Message // has the metadata of the row before
	var of *windowing.Mark
	for i, m := range d.Messages {
		t := &tags[i]
		*t = tag{Context: context.Background(), of: d, index: i}
		r, ok := m.(*rendered)
		if !ok {
			m := m.(*service.Message)
			t.Context = m.Context()
			batch[i] = m.WithContext(t).Copy()
			continue
		}
		if of == nil || !alike(of, r.mark) {
			of, pattern = r.mark, r.message(nil)
		}
		m := pattern.WithContext(t).Copy()
		m.SetBytes(r.payload)
		if r.mark.RowKey != "" {
			m.MetaSetMut(metaRowKey, r.mark.RowKey)
			m.MetaSetMut(metaRowID, ids.next())
			m.MetaSetMut(metaRevision, r.mark.Revision)
		}
		batch[i] = m
	}
	return batch
}

// idTexts are the row ids of a delivery in one text.
type idTexts struct {
	text string
	ends []int
	from int
}

// rowIDs writes the row ids of rendered rows, as windowing.RowID does.
func rowIDs(rows []windowing.Message) *idTexts {
	size, n := 0, 0
	for _, m := range rows {
		if r, ok := m.(*rendered); ok {
			size += len(r.mark.RowKey) + 4
			n++
		}
	}
	ids := &idTexts{ends: make([]int, 0, n)}
	var digits [24]byte
	var b strings.Builder // it makes a text of its memory
	b.Grow(size)
	for _, m := range rows {
		r, ok := m.(*rendered)
		if !ok || r.mark.RowKey == "" {
			continue
		}
		key := r.mark.RowKey
		b.WriteString(key[:len(key)-1])
		number := strconv.AppendInt(append(digits[:0], ','), r.mark.Revision, 10)
		b.Write(append(number, ']'))
		ids.ends = append(ids.ends, b.Len())
	}
	ids.text = b.String()
	return ids
}

// next gives the row id of the next row that has one.
func (t *idTexts) next() string {
	id := t.text[t.from:t.ends[0]]
	t.from, t.ends = t.ends[0], t.ends[1:]
	return id
}

// tag is the context of a message that was handed over. Whatever becomes of the
// message, its place in the delivery is found there. It is what service.Indexer
// does, for a tenth of the memory.
type tag struct {
	context.Context
	of    *host.Delivery
	index int
}

type tagKey struct{}

// Value implements context.Context.
func (t *tag) Value(key any) any {
	if key == (tagKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// placeIn gives the index of the row of a delivery that a message derives from.
func placeIn(d *host.Delivery, m *service.Message) (index int, ok bool) {
	t, _ := m.Context().Value(tagKey{}).(*tag)
	if t == nil || t.of != d {
		return 0, false
	}
	return t.index, true
}
