package expr

import (
	"hash/maphash"
	"strings"
	"unsafe"
)

// recent remembers texts that were kept lately, so that keys that come again and
// again are copied once. Every text that leaves a Frame is a string of its own,
// never part of a document: it may be kept for ever.
type recent [128]string

// longest text that is remembered: beyond it a repetition is unlikely.
const longest = 64

var seed = maphash.MakeSeed()

// keep gives a string equal to the view that does not share its bytes.
func (r *recent) keep(view string) string {
	if len(view) > longest {
		return strings.Clone(view)
	}
	place := &r[maphash.String(seed, view)%uint64(len(r))]
	if *place != view {
		*place = strings.Clone(view)
	}
	return *place
}

// view reads bytes as a string without copying; it is good as long as they are
// not written.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
