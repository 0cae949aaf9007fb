package machine

import (
	"encoding/json"
	"fmt"
	"math/big"
	"time"
)

// Unit is the unit of times in a file, as an exact fraction of a second.
type Unit string

// perSecond is how many of the unit make a second. A file without a unit counts
// seconds.
var perSecond = map[Unit]int64{"": 1, "s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}

// Nanoseconds converts a decimal in the unit exactly.
func (u Unit) Nanoseconds(n json.Number) (int64, error) {
	per, ok := perSecond[u]
	if !ok {
		return 0, fmt.Errorf("unit %q is not known", u)
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return 0, fmt.Errorf("%q is no number", n)
	}
	r.Mul(r, big.NewRat(1e9/per, 1))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, fmt.Errorf("%s %s is no whole number of nanoseconds", n, u)
	}
	return r.Num().Int64(), nil
}

// ParseTime reads an RFC 3339 text as nanoseconds since 1970.
func ParseTime(text string) (int64, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, err
	}
	return t.UnixNano(), nil
}
