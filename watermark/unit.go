package watermark

import (
	"fmt"
	"math"
	"strconv"
)

// Unit is the unit of numeric event times. It is declared, never guessed.
type Unit uint8

// Units, from the coarsest to the finest.
const (
	Second Unit = iota
	Millisecond
	Microsecond
	Nanosecond
)

// units is the table of units: name, nanoseconds, and their power of ten.
var units = [...]struct {
	name  string
	nanos int64
	power int
}{
	Second:      {"s", 1_000_000_000, 9},
	Millisecond: {"ms", 1_000_000, 6},
	Microsecond: {"us", 1_000, 3},
	Nanosecond:  {"ns", 1, 0},
}

// ParseUnit reads "s", "ms", "us" or "ns". The error wraps ErrName.
func ParseUnit(name string) (Unit, error) {
	for u := range units {
		if units[u].name == name {
			return Unit(u), nil
		}
	}
	return Second, fmt.Errorf("%w: unit %q: allowed are s, ms, us and ns", ErrName, clip(name))
}

// String is the name that ParseUnit reads.
func (u Unit) String() string {
	if int(u) < len(units) {
		return units[u].name
	}
	return "unit " + strconv.Itoa(int(u))
}

// FromInt converts a whole number of units since 1970. The error wraps ErrRange and
// names the unit in which the number would be a time.
func (u Unit) FromInt(n int64) (Time, error) {
	if t, ok := u.fromInt(n); ok {
		return t, nil
	}
	return Unset, u.outOfRange(strconv.FormatInt(n, 10))
}

func (u Unit) fromInt(n int64) (Time, bool) {
	nanos := units[u].nanos
	if n < int64(Min)/nanos || n > int64(Max)/nanos {
		return Unset, false
	}
	return Time(n * nanos), true
}

// FromFloat converts a number that exists as a float64 only. It counts as its shortest
// decimal text, so 1700000040.1 is 100 ms and not the binary fraction next to it.
// Errors as FromDecimal; NaN and infinities wrap ErrMalformed.
func (u Unit) FromFloat(f float64) (Time, error) {
	const exact = 1 << 53
	if f > -exact && f < exact && f == math.Trunc(f) {
		return u.FromInt(int64(f))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Unset, fmt.Errorf("%w: %v is not a number of %s since 1970", ErrMalformed, f, u)
	}
	var buf [32]byte
	return u.FromDecimalBytes(strconv.AppendFloat(buf[:0], f, 'e', -1, 64))
}

// FromDecimal converts the text of a JSON number, with fraction and exponent, exactly
// and never through a float64. What is finer than a nanosecond is floored, which keeps
// the order of times and the window that they fall into. Errors wrap ErrMalformed (no
// JSON number) or ErrRange (with the unit in which it would be a time).
func (u Unit) FromDecimal(text string) (Time, error) { return fromDecimal(u, text) }

// FromDecimalBytes is FromDecimal over bytes, which it does not keep.
func (u Unit) FromDecimalBytes(text []byte) (Time, error) { return fromDecimal(u, text) }

func fromDecimal[S ~string | ~[]byte](u Unit, text S) (Time, error) {
	t, err := parseDecimal(text, u)
	switch err {
	case nil:
		return t, nil
	case ErrRange:
		return Unset, u.outOfRange(string(text))
	}
	return Unset, fmt.Errorf("%w: %q is not a JSON number of %s since 1970", err, clip(text), u)
}

// outOfRange builds the error for a number that is no time in this unit. The likely
// unit is the coarsest finer one that makes it a time: too large a number comes from a
// finer clock.
func (u Unit) outOfRange(text string) error {
	for finer := int(u) + 1; finer < len(units); finer++ {
		if t, err := parseDecimal(text, Unit(finer)); err == nil {
			return fmt.Errorf("%w: %s read as unit %s is not between %s and %s; read as unit %s it is %s: likely the unit is %s",
				ErrRange, clip(text), u, Min, Max, Unit(finer), t, Unit(finer))
		}
	}
	return fmt.Errorf("%w: %s read as unit %s is not between %s and %s, nor is it in a finer unit",
		ErrRange, clip(text), u, Min, Max)
}
