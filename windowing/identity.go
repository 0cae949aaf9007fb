package windowing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/connect-windowed/connect-windowed/watermark"
	"github.com/connect-windowed/connect-windowed/windowing/agg"
)

const (
	// rowKeyLimit is the largest length of a row key in bytes.
	rowKeyLimit = 512
	// nameLimit is from which length on (as JSON) a name is abbreviated.
	nameLimit = 128
	// prefixLimit bounds the readable part of an abbreviation, quoted.
	prefixLimit = 96
)

// Identity makes the row keys of one operator: ASCII JSON arrays
//
//	[name, [group values in the order of their names], start, end]
//
// with instants in RFC 3339, UTC, up to 9 decimals. Characters beyond ASCII are
// written as \uXXXX. No row key is longer than 512 bytes: where it would be, and
// where a group value is not what JSON can tell apart (bytes that are not UTF-8,
// NaN, an infinity), an object {"prefix": ..., "sha256": ...} takes the place of
// the group values, with the beginning of their text and the hash of the
// canonical group. An object never equals a list, so that an abbreviated key
// cannot meet a whole one. A name over 128 bytes is abbreviated in the same way.
//
// An Identity belongs to one goroutine.
type Identity struct {
	name []byte // as it stands in a row key
	buf  []byte
}

// NewIdentity makes the identity of the operator with the name.
func NewIdentity(name string) *Identity {
	text := appendASCII(nil, agg.String(name).AppendJSON(nil))
	if len(text) > nameLimit || !utf8.ValidString(name) {
		text = appendAbbreviation(nil, text, []byte(name))
	}
	return &Identity{name: text}
}

// AppendRowKey appends a row key. The group is canonical (agg.Value.AppendKey,
// one after the other); rest is what follows it, each element with a comma
// before it, see AppendSpan. Its bytes are ASCII JSON and at most 128. A group
// that is not canonical is a mistake of the program and panics.
func (id *Identity) AppendRowKey(b, group, rest []byte) []byte {
	from := len(b)
	b = append(append(append(b, '['), id.name...), ',')
	text := len(b)
	b, exact := id.appendGroup(b, group)
	if !exact || len(b)-from+len(rest)+1 > rowKeyLimit {
		id.buf = append(id.buf[:0], b[text:]...)
		b = appendAbbreviation(b[:text], id.buf, group)
	}
	return append(append(b, rest...), ']')
}

// appendGroup appends the group values as a list. It is not exact where another
// group has the same text.
func (id *Identity) appendGroup(b, group []byte) (text []byte, exact bool) {
	exact = true
	b = append(b, '[')
	for first := true; len(group) > 0; first = false {
		value, rest, err := agg.DecodeKey(group)
		if err != nil {
			panic(fmt.Sprintf("windowing: group %x: %v", group, err))
		}
		if !first {
			b = append(b, ',')
		}
		id.buf = value.AppendJSON(id.buf[:0])
		b = appendASCII(b, id.buf)
		exact = exact && value.IsFinite() && utf8.ValidString(value.AsString())
		group = rest
	}
	return append(b, ']'), exact
}

// RowKey is the row key of a window, for callers that need one only.
func RowKey(name string, group []byte, window Span) string {
	return string(NewIdentity(name).AppendRowKey(nil, group, AppendSpan(nil, window)))
}

// RowID is the row key with the revision as its last element. It names one
// delivery of a row: a row that comes twice with one row id is the same row.
func RowID(rowKey string, revision int64) string {
	if rowKey == "" {
		return ""
	}
	b := make([]byte, 0, len(rowKey)+21)
	b = append(append(b, rowKey[:len(rowKey)-1]...), ',')
	b = strconv.AppendInt(b, revision, 10)
	return string(append(b, ']'))
}

// AppendSpan appends the elements of a row key that name a window.
func AppendSpan(b []byte, s Span) []byte {
	return AppendInstant(AppendInstant(b, s.Start), s.End)
}

// AppendInstant appends the element of a row key that names an instant.
func AppendInstant(b []byte, t watermark.Time) []byte {
	return append(AppendBound(append(b, ',', '"'), t), '"')
}

// AppendBound appends a bound of a span as RFC 3339 in UTC with up to 9 decimals.
// watermark.EndOfTime, a name elsewhere, is the instant after the largest event
// time here: 2262-04-11T23:47:16.854775807Z.
func AppendBound(b []byte, t watermark.Time) []byte {
	if t == watermark.EndOfTime {
		return t.Std().AppendFormat(b, time.RFC3339Nano)
	}
	return t.AppendRFC3339(b)
}

// appendAbbreviation appends an object that stands for the text (ASCII JSON):
// how it begins and the hash of what it was made of.
func appendAbbreviation(b, text, of []byte) []byte {
	b = append(b, `{"prefix":"`...)
	for from := len(b); len(text) > 0 && len(b)-from < prefixLimit-1; text = text[1:] {
		if text[0] == '"' || text[0] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, text[0])
	}
	b = append(b, `","sha256":"`...)
	sum := sha256.Sum256(of)
	return append(hex.AppendEncode(b, sum[:]), '"', '}')
}

// appendASCII appends JSON text with \uXXXX for what is not ASCII, which stands
// inside of strings only.
func appendASCII(b, text []byte) []byte {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			from := i
			for i++; i < len(text) && text[i] < utf8.RuneSelf; i++ {
			}
			b = append(b, text[from:i]...)
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		i += size
		if r > 0xffff { // a pair of surrogates
			r -= 0x10000
			b = appendUnit(b, 0xd800+r>>10)
			r = 0xdc00 + r&0x3ff
		}
		b = appendUnit(b, r)
	}
	return b
}

func appendUnit(b []byte, unit rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[unit>>12&15], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
}
