package expr

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape appends what the inside of a string stands for. The scanner has
// accepted it. A surrogate without its other half becomes U+FFFD, as in
// encoding/json.
func unescape(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		if b[i] != '\\' {
			next, _ := scanPlain(b, i, 0)
			dst = append(dst, b[i:next]...)
			i = next
			continue
		}
		if b[i+1] != 'u' {
			dst = append(dst, escapes[b[i+1]])
			i += 2
			continue
		}
		r := hex4(b, i+2)
		i += 6
		if utf16.IsSurrogate(r) {
			pair := rune(unicode.ReplacementChar)
			if i+6 <= len(b) && b[i] == '\\' && b[i+1] == 'u' {
				pair = utf16.DecodeRune(r, hex4(b, i+2))
			}
			if r = pair; pair != unicode.ReplacementChar {
				i += 6
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// hex4 reads four hexadecimal digits; anything else gives fail.
func hex4(b []byte, i int) rune {
	if i+4 > len(b) {
		return fail
	}
	var r rune
	for _, c := range b[i : i+4] {
		digit := hexDigits[c]
		if digit == 0 {
			return fail
		}
		r = r<<4 | rune(digit-1)
	}
	return r
}

// hexDigits maps a hexadecimal digit to its value plus one.
var hexDigits = func() (table [256]byte) {
	for i, c := range []byte("0123456789abcdef") {
		table[c] = byte(i + 1)
	}
	for i, c := range []byte("ABCDEF") {
		table[c] = byte(i + 11)
	}
	return table
}()
