package processors

import (
	"strconv"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/connect-windowed/connect-windowed/statecache/kv"
	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing"
)

// The metadata of emitted rows says little for its length, and a close writes it
// once for each row: names that we own stand as numbers in the outbox, a row id as
// what it is made of, a time as its number of nanoseconds.

// shortNames are the names that have a number. Their places are part of the format.
var shortNames = [...]string{1: metaRowKey, metaRowID, metaRevision, metaTiming, metaOperator, metaEventTime,
	metaWatermark, metaStart, metaEnd, metaLateOperator, metaLateBy, metaDuplicate}

// markTimes are the times of a row by the names of their metadata.
var markTimes = map[string]int{metaEventTime: eventTimeText, metaWatermark: watermarkText, metaStart: startText, metaEnd: endText}

// shortName is a name of ours.
type shortName struct {
	name   string
	number uint64
	time   int // of markTimes, noTime: it is none
}

const noTime = -1

// shortBySize finds names by their length, which tells nearly all of them apart.
var shortBySize = func() (bySize [32][]shortName) {
	for i, name := range shortNames[1:] {
		s := shortName{name: name, number: uint64(i + 1), time: noTime}
		if which, ok := markTimes[name]; ok {
			s.time = which
		}
		bySize[len(name)] = append(bySize[len(name)], s)
	}
	return bySize
}()

// shortOf gives what is known of a name, nil where it is none of ours.
func shortOf(key string) *shortName {
	if len(key) >= len(shortBySize) {
		return nil
	}
	of := shortBySize[len(key)]
	for i := range of {
		if of[i].name == key {
			return &of[i]
		}
	}
	return nil
}

// appendMetadata encodes a name and its value. The name is its number, or 0 and
// the name.
func (e edge) appendMetadata(b []byte, m *service.Message, key string, value any) []byte {
	s := shortOf(key)
	if s == nil {
		return appendMeta(kv.AppendBlob(kv.AppendUvarint(b, 0), key), value)
	}
	b = kv.AppendUvarint(b, s.number)
	if b, done := e.appendShort(b, m, s, value); done {
		return b
	}
	return appendMeta(b, value)
}

func readName(d *kv.Decoder) string {
	n := d.Uvarint()
	switch {
	case n == 0:
		return d.String()
	case n >= uint64(len(shortNames)):
		d.Fail("no metadata has the number %d", n)
		return ""
	}
	return shortNames[n]
}

// appendShort encodes a value of ours in few bytes where it is what it mostly is.
func (e edge) appendShort(b []byte, m *service.Message, s *shortName, value any) (_ []byte, done bool) {
	text, ok := value.(string)
	if !ok {
		return b, false
	}
	switch {
	case s.time != noTime && e.texts != nil:
		if last := &e.texts.times[s.time]; last.text == value {
			return kv.AppendVarint(append(b, kindInstant), int64(last.at)), true
		}
	case s.name == metaRowID && isRowID(m, text):
		return append(b, kindRowID), true
	}
	return b, false
}

// isRowID says that a text is what windowing.RowID makes of the row key and the
// revision of the message.
func isRowID(m *service.Message, text string) bool {
	key, revision, ok := rowOf(m)
	if !ok || len(text) < len(key) || text[:len(key)-1] != key[:len(key)-1] {
		return false
	}
	var room [24]byte
	rest := append(strconv.AppendInt(append(room[:0], ','), revision, 10), ']')
	return text[len(key)-1:] == string(rest)
}

// rowOf gives the row key and the revision of a message.
func rowOf(m *service.Message) (key string, revision int64, ok bool) {
	k, _ := m.MetaGetMut(metaRowKey)
	r, _ := m.MetaGetMut(metaRevision)
	key, ok1 := k.(string)
	revision, ok2 := r.(int64)
	return key, revision, ok1 && ok2 && key != ""
}

// readRowID puts the row id onto a message that has what it is made of.
func readRowID(d *kv.Decoder, m *service.Message) {
	key, revision, ok := rowOf(m)
	if !ok {
		d.Fail("a row id without a row key and a revision")
		return
	}
	m.MetaSetMut(metaRowID, windowing.RowID(key, revision))
}

// readInstant reads a time under its name.
func readInstant(d *kv.Decoder, key string) string {
	at := watermark.Time(d.Varint())
	which, ok := markTimes[key]
	if !ok {
		d.Fail("metadata %q is no time", key)
		return ""
	}
	return timeText(which, at)
}
