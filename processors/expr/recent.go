package expr

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unsafe"
)

// recent remembers texts that were kept lately, so that keys that come again and
// again are copied once. Every text that leaves a Frame is a string of its own,
// never part of a document: it may be kept for ever.
//
// A text has two places, the newer one first. The hash need not be strong: texts
// that share their places are only copied more often.
type recent [64][2]string

// longest text that is remembered: beyond it a repetition is unlikely.
const longest = 64

// keep gives a string equal to the view that does not share its bytes.
func (r *recent) keep(view string) string {
	if len(view) > longest {
		return strings.Clone(view)
	}
	places := &r[hash(view)>>58]
	if places[0] == view {
		return places[0]
	}
	if places[1] == view {
		return places[1]
	}
	places[1] = places[0]
	places[0] = strings.Clone(view)
	return places[0]
}

// hash mixes the first and the last eight bytes and the length.
func hash(text string) uint64 {
	b := unsafe.Slice(unsafe.StringData(text), len(text))
	var first, last uint64
	if len(b) >= 8 {
		first, last = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[len(b)-8:])
	} else {
		for _, c := range b {
			first = first<<8 | uint64(c)
		}
	}
	h := (first ^ bits.RotateLeft64(last, 35) ^ uint64(len(b))<<48) * 0x9e3779b97f4a7c15
	return (h ^ h>>32) * 0xd6e8feb86659fd93
}

// view reads bytes as a string without copying; it is good as long as they are
// not written.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
