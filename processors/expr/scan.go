package expr

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// The scanner accepts exactly RFC 8259 text in valid UTF-8, nested no deeper
// than maxDepth. Every function takes the index where to start and returns the
// index behind what it read, or fail. It never says why: encoding/json is asked
// for that (see Frame.document), which also keeps the last word on what is JSON.

// fail is returned for text that the scanner does not accept.
const fail = -1

// maxDepth bounds the nesting that the scanner follows itself. encoding/json
// goes on to 10000; such documents are left to it.
const maxDepth = 512

// A word holds eight bytes of the text; these repeat one byte in each of them.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stops marks, with the high bit of its byte, the first byte of w that ends a
// plain stretch of a string: a quote, a backslash or a control character. Marks
// above the first one may be wrong: subtraction borrows upwards only. With the
// bit of 2 turned over, the quote (0x22) joins the control characters below 0x21.
func stops(w uint64) uint64 {
	slash := w ^ ones*'\\'
	return ((w^ones*2-ones*0x21)&^w | (slash-ones)&^slash) & highs
}

// odd marks what stops does, and what is not ASCII: a word without marks is plain.
func odd(w uint64) uint64 { return w | (w ^ ones*2 - ones*0x21) | (w ^ ones*'\\' - ones) }

// stretch is how much of a string is read word by word before it counts as long.
const stretch = 64

// skipPlain skips plain ASCII by four words at once, as far as that goes.
func skipPlain(b []byte, i int) int {
	for ; i+32 <= len(b); i += 32 {
		w := b[i : i+32 : i+32]
		marks := odd(binary.LittleEndian.Uint64(w)) | odd(binary.LittleEndian.Uint64(w[8:])) |
			odd(binary.LittleEndian.Uint64(w[16:])) | odd(binary.LittleEndian.Uint64(w[24:]))
		if marks&highs != 0 {
			break
		}
	}
	return i
}

// scanString reads a string behind its opening quote and returns the index of
// the closing one, and whether there are escapes to resolve in between.
func scanString(b []byte, i int) (end int, escaped bool) {
	long := i + stretch
	for start, high := i, uint64(0); ; {
		for ; i+8 <= len(b); i += 8 {
			w := binary.LittleEndian.Uint64(b[i:])
			if m := stops(w); m != 0 {
				at := bits.TrailingZeros64(m)
				high |= w & highs & (1<<(at&63) - 1)
				i += at >> 3
				break
			}
			high |= w & highs
			if i >= long {
				i = skipPlain(b, i+8) - 8
				long = i + (i - start) // not too often where that leads nowhere
			}
		}
		if i+8 > len(b) {
			i, high = scanPlain(b, i, high)
		}
		switch {
		case i < len(b) && b[i] == '"':
			if high != 0 && !utf8.Valid(b[start:i]) {
				return fail, false
			}
			return i, escaped
		case i < len(b) && b[i] == '\\':
			if i = scanEscape(b, i+1); i < 0 {
				return fail, false
			}
			escaped = true
		default: // the end, or a control character
			return fail, false
		}
	}
}

// scanPlain skips to the next byte that stops would mark, or to the end. high
// collects the high bits on the way: not zero if there is something beside ASCII.
func scanPlain(b []byte, i int, high uint64) (int, uint64) {
	for ; i < len(b); i++ {
		c := b[i]
		if c == '"' || c == '\\' || c < ' ' {
			break
		}
		high |= uint64(c) & 0x80
	}
	return i, high
}

// escapes maps the letter behind a backslash to the byte it stands for; zero is
// no escape ('u' is read apart).
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// scanEscape reads an escape behind its backslash.
func scanEscape(b []byte, i int) int {
	if i >= len(b) {
		return fail
	}
	if escapes[b[i]] != 0 {
		return i + 1
	}
	if b[i] != 'u' || hex4(b, i+1) < 0 {
		return fail
	}
	return i + 5
}

// scanNumber reads a number and says whether it is written as an integer.
func scanNumber(b []byte, i int) (end int, integer bool) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	first := i
	if i = scanDigits(b, i); i < 0 || b[first] == '0' && i > first+1 {
		return fail, false
	}
	if i == len(b) || b[i] != '.' && b[i]|0x20 != 'e' {
		return i, true
	}
	if b[i] == '.' {
		if i = scanDigits(b, i+1); i < 0 {
			return fail, false
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		i = scanDigits(b, i)
	}
	return i, false
}

// scanDigits reads one digit or more.
func scanDigits(b []byte, i int) int {
	start := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == start {
		return fail
	}
	return i
}

// scanWord reads one of the words null, true and false.
func scanWord(b []byte, i int, word string) int {
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end
	}
	return fail
}

// space skips white space.
func space(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// colon reads the colon behind a key, with the white space around it.
func colon(b []byte, i int) int {
	if i < len(b) && b[i] != ':' {
		i = space(b, i)
	}
	if i >= len(b) || b[i] != ':' {
		return fail
	}
	if i++; i < len(b) && b[i] <= ' ' {
		i = space(b, i)
	}
	return i
}

// scanScalar reads a value that is neither an object nor a list, and says where it
// stands. There must be a byte at i.
func scanScalar(b []byte, i int) (got span, end int) {
	token, start := number, i
	switch b[i] {
	case '"':
		start++
		inside, escaped := scanString(b, start)
		if inside < 0 {
			return span{}, fail
		}
		return span{start: uint32(start), end: uint32(inside), token: str, escaped: escaped}, inside + 1
	case 'n':
		token, end = null, scanWord(b, i, "null")
	case 't':
		token, end = boolTrue, scanWord(b, i, "true")
	case 'f':
		token, end = boolFalse, scanWord(b, i, "false")
	default:
		var whole bool
		if end, whole = scanNumber(b, i); whole {
			token = integer
		}
	}
	return span{start: uint32(start), end: uint32(end), token: token}, end
}

// nesting remembers which of the open containers are objects.
type nesting [maxDepth / 64]uint64

func (n *nesting) set(depth int, object bool) {
	bit := uint64(1) << (depth & 63)
	if n[depth>>6] &^= bit; object {
		n[depth>>6] |= bit
	}
}

func (n *nesting) object(depth int) bool { return n[depth>>6]>>(depth&63)&1 != 0 }

// skip reads a value of any kind that nobody asked for; depth containers are
// open around it.
func skip(b []byte, i, depth int) int {
	if i < len(b) && b[i] != '{' && b[i] != '[' {
		_, i = scanScalar(b, i)
		return i
	}
	return skipContainer(b, i, depth)
}

// skipContainer is skip for an object or a list. It does not recurse.
func skipContainer(b []byte, i, depth int) int {
	var open nesting
	outer := depth
	for i < len(b) {
		switch c := b[i]; c {
		case '{', '[':
			if depth == maxDepth {
				return fail
			}
			open.set(depth, c == '{')
			depth++
			if i = space(b, i+1); i < len(b) && b[i] == c+2 { // '}' and ']' are two above
				i, depth = i+1, depth-1
				break
			}
			if c == '{' {
				i = skipKey(b, i)
			}
			if i < 0 {
				return fail
			}
			continue
		default:
			if _, i = scanScalar(b, i); i < 0 {
				return fail
			}
		}
		if i, depth = skipClosers(b, i, depth, outer, &open); i < 0 || depth == outer {
			return i
		}
	}
	return fail
}

// skipKey reads a key and its colon.
func skipKey(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return fail
	}
	if i, _ = scanString(b, i+1); i < 0 {
		return fail
	}
	return colon(b, i+1)
}

// skipClosers reads what may stand behind a value: any number of closing
// brackets, and a comma with the key behind it if a container is still open.
func skipClosers(b []byte, i, depth, outer int, open *nesting) (int, int) {
	for depth > outer {
		if i = space(b, i); i >= len(b) {
			return fail, depth
		}
		object := open.object(depth - 1)
		switch {
		case b[i] == ',' && object:
			return skipKey(b, space(b, i+1)), depth
		case b[i] == ',':
			return space(b, i+1), depth
		case b[i] == '}' && object, b[i] == ']' && !object:
			i, depth = i+1, depth-1
		default:
			return fail, depth
		}
	}
	return i, depth
}
