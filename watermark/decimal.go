package watermark

// parseDecimal reads a JSON number of units as a time, floored to nanoseconds. It
// returns ErrMalformed or ErrRange bare: the caller knows what to say about them.
//
// The number is digits x 10^exponent nanoseconds. At most 19 digits stand before the
// decimal point of a time, so those are gathered in a uint64; of all others it only
// matters whether one is not 0.
func parseDecimal[S ~string | ~[]byte](s S, u Unit) (Time, error) {
	n, ok := scanNumber(s)
	if !ok {
		return Unset, ErrMalformed
	}
	if n.first < 0 {
		return 0, nil
	}
	// whole is the number of digits before the point, counted from the first that is
	// not 0: negative for 0.0001.
	whole := n.exponent + n.scale + int64(units[u].power)
	if whole > maxDigits {
		return Unset, ErrRange
	}
	var nanos uint64
	var rest bool
	taken := int64(0)
	for at := n.first; at < n.end; at++ {
		if s[at] == '.' {
			continue
		}
		if taken < whole {
			nanos = nanos*10 + uint64(s[at]-'0')
		} else if s[at] != '0' {
			rest = true
			break
		}
		taken++
	}
	for ; taken < whole; taken++ {
		nanos *= 10
	}
	if n.negative && rest {
		nanos++
	}
	// Min is further from 0 than Max, by one.
	switch {
	case n.negative && nanos <= uint64(-Min):
		return -Time(nanos), nil
	case !n.negative && nanos <= uint64(Max):
		return Time(nanos), nil
	}
	return Unset, ErrRange
}

// maxDigits is the number of digits of the largest int64, and one less than what a
// uint64 holds in any case.
const maxDigits = 19

// number is the layout of a JSON number in its text.
type number struct {
	negative bool
	first    int   // the first digit that is not 0, negative when there is none
	end      int   // after the last digit of the fraction
	scale    int64 // digits from first to the decimal point; negative when first is behind a gap
	exponent int64
}

// maxExponent bounds the exponent where no text that fits into memory can bring the
// number back into the range of times; the sign of what it stands for is kept.
const maxExponent = 1 << 60

// scanNumber checks s against the grammar of RFC 8259, section 6.
func scanNumber[S ~string | ~[]byte](s S) (n number, ok bool) {
	n.first = -1
	at := 0
	if at < len(s) && s[at] == '-' {
		n.negative = true
		at++
	}
	start := at
	at = digits(s, at, &n)
	if at == start || (s[start] == '0' && at > start+1) {
		return n, false
	}
	point := at
	if at < len(s) && s[at] == '.' {
		at++
		fraction := at
		if at = digits(s, at, &n); at == fraction {
			return n, false
		}
	}
	n.end = at
	if n.scale = int64(point - n.first); n.first > point {
		n.scale++ // the point itself is no digit
	}
	if at < len(s) && s[at]|0x20 == 'e' {
		n.exponent, at = exponent(s, at+1)
	}
	return n, at == len(s)
}

// digits skips digits from at on and notes the first that is not 0.
func digits[S ~string | ~[]byte](s S, at int, n *number) int {
	for ; at < len(s) && isDigit(s[at]); at++ {
		if n.first < 0 && s[at] != '0' {
			n.first = at
		}
	}
	return at
}

// exponent reads a sign and digits from at on; end is -1 when there is no digit.
func exponent[S ~string | ~[]byte](s S, at int) (value int64, end int) {
	negative := false
	if at < len(s) && (s[at] == '+' || s[at] == '-') {
		negative = s[at] == '-'
		at++
	}
	if at == len(s) {
		return 0, -1
	}
	for end = at; end < len(s) && isDigit(s[end]); end++ {
		if value < maxExponent/16 {
			value = value*10 + int64(s[end]-'0')
		}
	}
	if end == at {
		return 0, -1
	}
	if negative {
		value = -value
	}
	return value, end
}
